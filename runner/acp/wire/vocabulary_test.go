package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The vocabulary has each name of a member, and each word, that this package knows.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	names := Names()
	var words []string
	for member, list := range Words() {
		if !names[member] {
			t.Errorf("there is no member %s", member)
		}
		words = append(words, list...)
	}
	for name := range Open() {
		if !names[name] {
			t.Errorf("there is no member %s", name)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag == nil {
					break
				}
				tag, _ := strconv.Unquote(n.Tag.Value)
				if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); name != "" && name != "-" && !names[name] {
					t.Errorf("%s: the name %s isn't in the vocabulary", e.Name(), name)
				}
			case *ast.GenDecl:
				if n.Tok == token.CONST {
					wantWords(t, n, words)
				}
			case *ast.CallExpr: // member(raw, "name")
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "member" && len(n.Args) == 2 {
					if lit, ok := n.Args[1].(*ast.BasicLit); ok {
						if name, _ := strconv.Unquote(lit.Value); !names[name] {
							t.Errorf("%s: the name %s isn't in the vocabulary", e.Name(), name)
						}
					}
				}
			}
			return true
		})
	}
}

// wantWords looks for the texts among constants, but for those of a type of this package.
func wantWords(t *testing.T, d *ast.GenDecl, words []string) {
	t.Helper()
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		for i, v := range s.Values {
			lit, ok := v.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || s.Type != nil || !s.Names[i].IsExported() {
				continue
			}
			if word, _ := strconv.Unquote(lit.Value); !slices.Contains(words, word) {
				t.Errorf("the word %s isn't in the vocabulary", word)
			}
		}
	}
}
