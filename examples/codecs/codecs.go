// Package codecs shows bodies in other forms than JSON, and validation by tags. A codec is any value with Encode and Decode
// for the queue's type; give it to xstreamq.WithCodec.
package codecs

import (
	"github.com/go-playground/validator/v10"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"

	"github.com/xstreamq/xstreamq"
)

// Proto encodes protocol buffers. M is the generated struct, P its pointer, which is the queue's type:
//
//	xstreamq.NewQueue[*pb.Order](client, "orders", xstreamq.WithCodec(codecs.Proto[pb.Order, *pb.Order]{}))
type Proto[M any, P interface {
	*M
	proto.Message
}] struct{}

// Encode is deterministic, so that equal messages have equal bytes.
func (Proto[M, P]) Encode(m P) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// Decode keeps unknown fields: an older worker passes on what a newer producer added.
func (Proto[M, P]) Decode(b []byte) (P, error) {
	m := P(new(M))
	return m, proto.Unmarshal(b, m)
}

// MsgPack encodes any type that msgpack can; numbers keep their width and sign.
type MsgPack[T any] struct{}

// Encode is msgpack's.
func (MsgPack[T]) Encode(v T) ([]byte, error) { return msgpack.Marshal(v) }

// Decode is msgpack's.
func (MsgPack[T]) Decode(b []byte) (v T, err error) { return v, msgpack.Unmarshal(b, &v) }

var validate = validator.New(validator.WithRequiredStructEnabled()) // caches what it knows of types; safe for concurrent use

// Validated checks the tags of go-playground/validator before each publish and before each handler.
func Validated[T any]() xstreamq.QueueOption {
	return xstreamq.WithValidator(func(v T) error { return validate.Struct(v) })
}
