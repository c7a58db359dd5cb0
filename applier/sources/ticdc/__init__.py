"""What all formats of TiCDC have in common, whatever their bytes are: timestamps, large rows, compression, recognition of other formats.

Pure, like the formats: bytes in, values out.
"""
