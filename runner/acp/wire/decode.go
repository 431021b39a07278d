package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// maxElements bounds a list, since its elements take more memory than their JSON: a
// longer one counts as of a wrong type.
const maxElements = 10_000

// Decode reads params, a result or any other part of a message into one of the types
// of this package, with the leniency that the package document describes. Nothing at
// all, and null, are read as an object without members. ErrNotACP: something that is
// required is missing or of a wrong type; the text names it.
func Decode[T any](raw json.RawMessage) (T, error) {
	var v T
	if isNull(raw) {
		raw = json.RawMessage("{}")
	}
	if err := fill(raw, reflect.ValueOf(&v).Elem()); err != nil {
		return v, fmt.Errorf("%w: %w", ErrNotACP, err)
	}
	return v, nil
}

var rawType = reflect.TypeFor[json.RawMessage]()

// fill sets v, which is zero, from JSON. After an error v is not to be used.
func fill(raw json.RawMessage, v reflect.Value) error {
	if v.Type() == rawType {
		v.SetBytes(raw)
		return nil
	}
	if own, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		return own.UnmarshalJSON(raw)
	}
	switch v.Kind() {
	case reflect.Interface:
		return fillUnion(raw, v)
	case reflect.Struct:
		return fillStruct(raw, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(raw, v.Elem())
	case reflect.Slice:
		return fillSlice(raw, v)
	default:
		if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
			return fmt.Errorf("of a wrong type: %s", Excerpt(raw))
		}
		return nil
	}
}

func fillSlice(raw json.RawMessage, v reflect.Value) error {
	var bad error
	v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty list is not none
	isList := eachElement(raw, func(value json.RawMessage) bool {
		element := reflect.New(v.Type().Elem()).Elem()
		bad = fill(value, element)
		v.Set(reflect.Append(v, element))
		return bad == nil && v.Len() <= maxElements
	})
	if bad == nil && !isList {
		bad = fmt.Errorf("not a list of at most %d", maxElements)
	}
	return bad
}

// fillStruct goes by the json tags. A field Raw is the whole object; an embedded
// struct has its members in the same object.
func fillStruct(raw json.RawMessage, v reflect.Value) error {
	values := make([]json.RawMessage, v.NumField())
	names := make([]string, v.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
	}
	isMembers := eachMember(raw, func(name string, value json.RawMessage) {
		for i := range names {
			if names[i] == name {
				values[i] = value
			}
		}
	})
	if !isMembers {
		return fmt.Errorf("not an object: %s", Excerpt(raw))
	}
	for i, value := range values {
		switch field := v.Type().Field(i); {
		case field.Anonymous:
			if err := fillStruct(raw, v.Field(i)); err != nil {
				return err
			}
		case field.Name == "Raw":
			v.Field(i).SetBytes(raw)
		default:
			if err := fillField(value, v.Field(i), field); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillField sets one field, or leaves it zero if it may be.
func fillField(value json.RawMessage, v reflect.Value, field reflect.StructField) error {
	err := errMissing
	if field.Tag.Get("number") == "text" && isNumber(value) {
		value = json.RawMessage(`"` + string(value) + `"`)
	}
	if !isNull(value) {
		read := reflect.New(v.Type()).Elem()
		if err = fill(value, read); err == nil {
			v.Set(read)
			return nil
		}
	}
	if field.Tag.Get("wire") != "required" {
		return nil
	}
	return fmt.Errorf("%s: %w", field.Tag.Get("json"), err)
}

// isNumber reports whether a value is a number.
func isNumber(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

var errMissing = errors.New("it is missing")

// union is an interface whose type is told by a member.
type union struct {
	tag     string
	kinds   map[string]reflect.Type
	unknown func(kind string, raw json.RawMessage) any
}

var unions = map[reflect.Type]union{
	reflect.TypeFor[Update]():      updates,
	reflect.TypeFor[Block]():       blocks,
	reflect.TypeFor[ToolContent](): toolContents,
}

// fillUnion keeps an object that it can't read as unknown.
func fillUnion(raw json.RawMessage, v reflect.Value) error {
	if !isObject(raw) {
		return fmt.Errorf("not an object: %s", Excerpt(raw))
	}
	u := unions[v.Type()]
	kind := unquote(member(raw, u.tag))
	if t, ok := u.kinds[kind]; ok {
		read := reflect.New(t).Elem()
		if fill(raw, read) == nil {
			v.Set(read)
			return nil
		}
	}
	v.Set(reflect.ValueOf(u.unknown(kind, raw)))
	return nil
}
