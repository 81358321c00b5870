package xstreamq

import (
	"encoding/json"
	"fmt"
)

// Codec turns T into the body's bytes and back.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	Decode([]byte) (T, error)
}

// jsonCodec is the default.
type jsonCodec[T any] struct{}

func (jsonCodec[T]) Encode(v T) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec[T]) Decode(b []byte) (v T, err error) {
	err = json.Unmarshal(b, &v)
	return v, err
}

// bytesCodec passes []byte and json.RawMessage untouched.
type bytesCodec[T ~[]byte] struct{}

func (bytesCodec[T]) Encode(v T) ([]byte, error) { return v, nil }
func (bytesCodec[T]) Decode(b []byte) (T, error) { return b, nil }

func defaultCodec[T any]() Codec[T] {
	var c any = jsonCodec[T]{}
	switch any(*new(T)).(type) {
	case []byte:
		c = bytesCodec[[]byte]{}
	case json.RawMessage:
		c = bytesCodec[json.RawMessage]{}
	}
	return c.(Codec[T]) //nolint:forcetypeassert // each case makes one of T
}

// contract is a queue's codec and validators.
type contract[T any] struct {
	codec    Codec[T]
	validate []func(T) error
	bare     bool // T has no Validate, and there are no validators
}

type validator interface{ Validate() error }

// bareType says that neither T nor a pointer to it has a Validate; of an interface only its value could tell.
func bareType[T any]() bool {
	zero := any(*new(T))
	_, byValue := zero.(validator)
	_, byPointer := any(new(T)).(validator)
	return zero != nil && !byValue && !byPointer
}

// encode validates, then encodes. Errors: ErrInvalidBody.
func (c contract[T]) encode(v T) ([]byte, error) {
	v, err := c.check(v)
	if err != nil {
		return nil, err
	}
	b, err := c.codec.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("%w: encode %T: %w", ErrInvalidBody, v, err)
	}
	return b, nil
}

// decode decodes, then validates. Errors: ErrInvalidBody.
func (c contract[T]) decode(b []byte) (T, error) {
	v, err := c.codec.Decode(b)
	if err != nil {
		return v, fmt.Errorf("%w: decode %T: %w", ErrInvalidBody, v, err)
	}
	return c.check(v)
}

// check runs T's own Validate, by value or by pointer, then the queue's validators. What a Validate by pointer mends stays.
func (c contract[T]) check(v T) (T, error) {
	if c.bare { // by itself, since the copy below is made on the heap
		return v, nil
	}
	return c.checked(v)
}

func (c contract[T]) checked(v T) (T, error) {
	own, ok := any(v).(validator)
	if !ok {
		own, ok = any(&v).(validator)
	}
	if ok {
		if err := own.Validate(); err != nil {
			return v, fmt.Errorf("%w: %w", ErrInvalidBody, err)
		}
	}
	for _, f := range c.validate {
		if err := f(v); err != nil {
			return v, fmt.Errorf("%w: %w", ErrInvalidBody, err)
		}
	}
	return v, nil
}
