package gallery

import (
	"reflect"
	"runtime"
	"strings"

	"github.com/a-h/templ"
)

// Section is a group of components under one heading.
type Section struct {
	ID, Title string
	Note      string
	Examples  []Example
}

// Example is a component in one state, or in several that stand together.
type Example struct {
	Name   string
	Of     string // the component, by the name of its function
	Bodies []templ.Component
	List   bool // the bodies are rows of a list
}

// Sections are all of them, in the order of the page.
func Sections() []Section {
	return []Section{
		registers(), lastKnown(), views(), cells(), marks(),
		askCards(), unknownCards(), attemptCards(), heldNotices(), pageParts(),
		entries(), away(), outputs(), diffs(), traces(), plans(), settings(), facts(), queues(), composers(),
		formParts(), texts(), notices(), tables(), buttons(), icons(),
	}
}

// draw is one component, called with its arguments here, so that the name of an
// example can't say anything but what is drawn.
func draw(name string, component any, args ...any) Example {
	of, body := call(component, args)
	return Example{Name: name, Of: of, Bodies: []templ.Component{body}}
}

// also adds the same component in one more state to the example.
func (e Example) also(component any, args ...any) Example {
	_, body := call(component, args)
	e.Bodies = append(e.Bodies, body)
	return e
}

// plain is markup that no component draws: classes that pages use.
func plain(name string, body templ.Component) Example {
	return Example{Name: name, Bodies: []templ.Component{body}}
}

func call(component any, args []any) (of string, body templ.Component) {
	fn := reflect.ValueOf(component)
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		in[i] = reflect.ValueOf(a)
	}
	name := runtime.FuncForPC(fn.Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:], fn.Call(in)[0].Interface().(templ.Component)
}
