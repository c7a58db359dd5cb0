// Oracle for applier/ddl: TiDB's own parser reads statements, and says what they are and which tables they name.
//
//	oracle cases DIR   the statements in the parser's own tests (DIR is the module's directory), as JSON strings, one a line
//	oracle read        reads JSON strings from its input, one a line; prints one JSON object for each
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	goast "go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
)

// reading is what the oracle says of one statement. Names are pairs of schema ("" if it is not written) and table.
type reading struct {
	Error    string         `json:"error,omitempty"`
	Kind     string         `json:"kind,omitempty"`
	Names    [][2]string    `json:"names"`
	Creates  [][2]string    `json:"creates"`
	Drops    [][2]string    `json:"drops"`
	Renames  [][2][2]string `json:"renames"`
	Schema   *string        `json:"schema,omitempty"`
	Unnamed  int            `json:"unnamed"`
	Restored string         `json:"restored,omitempty"`
}

// tables collects the tables that a statement names. What a WITH has named is no table inside of its statement.
type tables struct {
	found  [][2]string
	scopes []map[string]bool
}

func (t *tables) Enter(node ast.Node) (ast.Node, bool) {
	switch n := node.(type) {
	case *ast.WithClause:
		t.scopes = append(t.scopes, map[string]bool{})
	case *ast.CommonTableExpression:
		if n.IsRecursive {
			t.scopes[len(t.scopes)-1][n.Name.L] = true
		}
	case *ast.ColumnOption:
		// The parser's own walk passes it by.
		if n.Refer != nil {
			t.found = append(t.found, pair(n.Refer.Table))
		}
	case *ast.TableName:
		if n.Schema.L == "" && t.isPart(n.Name.L) {
			break
		}
		t.found = append(t.found, pair(n))
	}
	return node, false
}

func (t *tables) Leave(node ast.Node) (ast.Node, bool) {
	with := (*ast.WithClause)(nil)
	switch n := node.(type) {
	case *ast.CommonTableExpression:
		t.scopes[len(t.scopes)-1][n.Name.L] = true
	case *ast.SelectStmt:
		with = n.With
	case *ast.SetOprStmt:
		with = n.With
	case *ast.SetOprSelectList:
		with = n.With
	}
	if with != nil {
		t.scopes = t.scopes[:len(t.scopes)-1]
	}
	return node, true
}

func (t *tables) isPart(name string) bool {
	for _, scope := range t.scopes {
		if scope[name] {
			return true
		}
	}
	return false
}

func pair(n *ast.TableName) [2]string { return [2]string{n.Schema.O, n.Name.O} }

func pairs(names []*ast.TableName) [][2]string {
	found := [][2]string{}
	for _, n := range names {
		found = append(found, pair(n))
	}
	return found
}

func read(text string) reading {
	p := parser.New()
	nodes, _, err := p.Parse(text, "", "")
	if err != nil {
		return reading{Error: err.Error()}
	}
	if len(nodes) != 1 {
		return reading{Error: fmt.Sprintf("%d statements", len(nodes))}
	}
	t := &tables{}
	nodes[0].Accept(t)
	said := describe(nodes[0])
	said.Names = t.found
	var restored strings.Builder
	flags := format.RestoreStringSingleQuotes | format.RestoreKeyWordUppercase | format.RestoreNameBackQuotes | format.RestoreTiDBSpecialComment |
		format.RestoreStringWithoutCharset
	if nodes[0].Restore(format.NewRestoreCtx(flags, &restored)) == nil {
		said.Restored = restored.String()
	}
	return said
}

func describe(node ast.StmtNode) reading {
	said := reading{Kind: "other", Creates: [][2]string{}, Drops: [][2]string{}, Renames: [][2][2]string{}}
	switch n := node.(type) {
	case *ast.CreateDatabaseStmt:
		said.Kind, said.Schema = "create_schema", &n.Name.O
	case *ast.AlterDatabaseStmt:
		said.Kind, said.Schema = "alter_schema", &n.Name.O
	case *ast.DropDatabaseStmt:
		said.Kind, said.Schema = "drop_schema", &n.Name.O
	case *ast.CreateTableStmt:
		said.Kind, said.Creates = "create_table", [][2]string{pair(n.Table)}
		if n.ReferTable != nil {
			said.Kind = "create_table_like"
		}
		said.Unnamed = unnamed(n.Constraints)
		if n.Select != nil {
			said.Kind = "other"
		}
	case *ast.DropTableStmt:
		said.Kind, said.Drops = "drop_table", pairs(n.Tables)
		if n.IsView {
			said.Kind = "drop_view"
		}
	case *ast.TruncateTableStmt:
		said.Kind = "truncate_table"
	case *ast.RenameTableStmt:
		said.Kind = "rename_table"
		for _, one := range n.TableToTables {
			said.Renames = append(said.Renames, [2][2]string{pair(one.OldTable), pair(one.NewTable)})
		}
	case *ast.AlterTableStmt:
		said.Kind = "alter_table"
		for _, spec := range n.Specs {
			switch spec.Tp {
			case ast.AlterTableRenameTable:
				said.Renames = append(said.Renames, [2][2]string{pair(n.Table), pair(spec.NewTable)})
			case ast.AlterTableExchangePartition:
				said.Kind = "exchange_partition"
			}
			said.Unnamed += unnamed(spec.NewConstraints)
			if spec.Constraint != nil {
				said.Unnamed += unnamed([]*ast.Constraint{spec.Constraint})
			}
		}
		if len(said.Renames) == len(n.Specs) && len(n.Specs) > 0 {
			said.Kind = "rename_table"
		}
	case *ast.CreateIndexStmt:
		said.Kind = "create_index"
	case *ast.DropIndexStmt:
		said.Kind = "drop_index"
	case *ast.CreateViewStmt:
		said.Kind, said.Creates = "create_view", [][2]string{pair(n.ViewName)}
	case *ast.RecoverTableStmt, *ast.FlashBackTableStmt:
		said.Kind = "recover_table"
	case ast.DDLNode:
		said.Kind = "other_ddl"
	}
	return said
}

// unnamed counts the indexes and foreign keys without a name.
func unnamed(constraints []*ast.Constraint) int {
	found := 0
	for _, one := range constraints {
		if one.Name == "" && one.Tp != ast.ConstraintPrimaryKey && one.Tp != ast.ConstraintCheck {
			found++
		}
	}
	return found
}

// cases prints the strings in the parser's tests: who reads them takes those that begin like a statement.
func cases(directory string) error {
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, name := range files {
		file, err := goparser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		goast.Inspect(file, func(node goast.Node) bool {
			if literal, ok := node.(*goast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
					_ = out.Encode(text)
				}
			}
			return true
		})
	}
	return nil
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "cases" {
		if err := cases(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	for in.Scan() {
		var text string
		if err := json.Unmarshal(in.Bytes(), &text); err != nil {
			_ = out.Encode(reading{Error: "not JSON"})
			continue
		}
		_ = out.Encode(read(text))
	}
}
