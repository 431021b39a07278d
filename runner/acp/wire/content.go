package wire

import (
	"encoding/json"
	"reflect"
)

// Block is a piece of content: TextBlock, ImageBlock, AudioBlock, LinkBlock,
// ResourceBlock or UnknownBlock.
type Block interface{ block() }

// TextBlock is text; agents mean Markdown.
type TextBlock struct {
	Text string `json:"text" wire:"required"`
}

// ImageBlock is an image in base64.
type ImageBlock struct {
	Data     string `json:"data" wire:"required"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri,omitempty"`
}

// AudioBlock is sound in base64.
type AudioBlock struct {
	Data     string `json:"data" wire:"required"`
	MIMEType string `json:"mimeType"`
}

// LinkBlock names a resource that the agent can reach.
type LinkBlock struct {
	URI         string `json:"uri" wire:"required"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Size        *int64 `json:"size,omitempty"`
}

// ResourceBlock holds a resource.
type ResourceBlock struct {
	Resource Resource `json:"resource" wire:"required"`
}

// Resource is text, or bytes in base64.
type Resource struct {
	URI      string  `json:"uri" wire:"required"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     *string `json:"blob,omitempty"`
}

// UnknownBlock is a block of a type that this package doesn't know, or that lacks
// what its type requires.
type UnknownBlock struct {
	Type string
	Raw  json.RawMessage
}

func (TextBlock) block()     {}
func (ImageBlock) block()    {}
func (AudioBlock) block()    {}
func (LinkBlock) block()     {}
func (ResourceBlock) block() {}
func (UnknownBlock) block()  {}

var blocks = union{
	tag: "type",
	kinds: map[string]reflect.Type{
		"text":          reflect.TypeFor[TextBlock](),
		"image":         reflect.TypeFor[ImageBlock](),
		"audio":         reflect.TypeFor[AudioBlock](),
		"resource_link": reflect.TypeFor[LinkBlock](),
		"resource":      reflect.TypeFor[ResourceBlock](),
	},
	unknown: func(kind string, raw json.RawMessage) any { return UnknownBlock{kind, raw} },
}

// MarshalJSON adds the type.
func (b TextBlock) MarshalJSON() ([]byte, error) {
	type plain TextBlock
	return typed("text", plain(b))
}

// MarshalJSON adds the type.
func (b ImageBlock) MarshalJSON() ([]byte, error) {
	type plain ImageBlock
	return typed("image", plain(b))
}

// MarshalJSON adds the type.
func (b AudioBlock) MarshalJSON() ([]byte, error) {
	type plain AudioBlock
	return typed("audio", plain(b))
}

// MarshalJSON adds the type.
func (b LinkBlock) MarshalJSON() ([]byte, error) {
	type plain LinkBlock
	return typed("resource_link", plain(b))
}

// MarshalJSON adds the type.
func (b ResourceBlock) MarshalJSON() ([]byte, error) {
	type plain ResourceBlock
	return typed("resource", plain(b))
}

// MarshalJSON is the block as it was.
func (b UnknownBlock) MarshalJSON() ([]byte, error) { return b.Raw, nil }

// typed puts a member type before the members of v, which has at least one.
func typed(name string, v any) ([]byte, error) {
	raw, err := marshal(v)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"type":"`+name+`",`), raw[1:]...), nil
}
