"""The data source ``ticdc`` as PySpark knows it. Each of Spark's planning processes makes or unpickles one."""

from typing import Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from applier.dataframe.changelog import ChangelogRows, JsonImages, TableImages, schema_text, table_columns_of
from applier.dataframe.options import TICDC, ChangelogOptions, Format, RowOptions, read_options
from applier.dataframe.position_columns import TopicColumns
from applier.dataframe.reading import BatchReader, FixedRange, RangeRows, StreamReader
from applier.dataframe.table_columns import columns_of
from applier.model.errors import ConfigError, Remedy
from applier.model.range_report import RangeId
from applier.sources.factory import kit_of, range_reader
from applier.sources.kit import PositionColumns
from applier.sources.port import Decoder


class ChangelogSource(DataSource):
    """Gives the changelog's schema and its readers. Its range is fixed by ``schema``, when the DataFrame is made."""

    _fixed: FixedRange | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return TICDC.name

    def schema(self) -> str:
        """Return the columns; the columns of the images, with the option ``table``, are found in the records."""
        options = self._read()
        # Kept with this object, which Spark pickles now: each action on the DataFrame reads the same records.
        self._fixed = FixedRange.of_present(options)
        if options.table is None:
            return schema_text(_positions(options))
        columns = options.columns or self._found_columns(options, self._fixed.ranges)
        return schema_text(_positions(options), columns)

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of a DataFrame."""
        options = self._read()
        # Without a range the schema was given by the caller.
        return BatchReader(_rows(options, schema), options, self._fixed)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - PySpark's name
        """Return the reader of a streaming query."""
        options = self._read()
        return StreamReader(_rows(options, schema), options)

    def _read(self) -> ChangelogOptions:
        return read_options(self.options)

    def _found_columns(self, options: ChangelogOptions, ranges: tuple[RangeId, ...]) -> str:
        if options.table is None:
            raise AssertionError("only a table has columns")
        return columns_of(options.table, range_reader(options.kafka), _decoder(options), ranges)


def _decoder(options: ChangelogOptions) -> Decoder:
    return kit_of(options.kafka).decoder(claim_check=options.claim_check)


def _positions(options: ChangelogOptions) -> TopicColumns:
    return TopicColumns(kit_of(options.kafka).timeline())


def _rows(options: ChangelogOptions, schema: StructType) -> RangeRows:
    return RangeRows(range_reader(options.kafka), changelog_rows(TICDC, options, schema, _decoder(options), _positions(options)), schema)


def changelog_rows(form: Format, options: RowOptions, schema: StructType, decoder: Decoder, positions: PositionColumns) -> ChangelogRows:
    """Return what makes rows of records. ConfigError: the schema is not one of the format."""
    try:
        columns = table_columns_of(schema, positions)
    except ValueError as error:
        raise ConfigError(
            f"this is not a schema of the format {form.name}: {error}",
            remedy=Remedy("dataframe.remove-schema-call", "Remove .schema(…), or use the option columns"),
        ) from error
    images: Any = JsonImages()
    if columns is not None:
        if options.table is None:
            raise ConfigError(
                "a schema with typed images needs the option table",
                remedy=Remedy("dataframe.give-table-option", 'For instance .option("table", "shop.orders")'),
            )
        images = TableImages.of_struct(columns, options.time_zone, is_strict=options.columns is None)
        images.check()
    return ChangelogRows(
        decoder=decoder,
        images=images,
        positions=positions,
        tables=options.tables,
        table=options.table,
        resolved=options.resolved,
        keeps_unreadable=options.keeps_unreadable,
    )
