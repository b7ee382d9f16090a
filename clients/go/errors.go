package contextsidecar

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrClosed is what requests fail with after [Client.Close].
var ErrClosed = errors.New("contextsidecar: the client is closed")

// A ConnectionLost says that the sidecar died, or stopped to speak the protocol. What it acknowledged is stored;
// what it did not answer may or may not be. Send again only what is safe to repeat, such as [Client.ContextCommitTurn].
type ConnectionLost struct {
	// Reason says how it ended, with the last words of its standard error.
	Reason string
}

func (e *ConnectionLost) Error() string { return "contextsidecar: " + e.Reason }

// A ResponseError is an error with which the sidecar answered. Data is of the type that belongs to the code:
// [ContextOverflowData] of [CodeContextOverflow], for instance.
type ResponseError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *ResponseError) Error() string {
	var advice ErrorData
	if json.Unmarshal(e.Data, &advice) == nil && advice.Hint != "" {
		return fmt.Sprintf("%s (%d): %s", e.Message, e.Code, advice.Hint)
	}
	return fmt.Sprintf("%s (%d)", e.Message, e.Code)
}

// Retryable says whether the same request may succeed later without a change.
func (e *ResponseError) Retryable() bool {
	var advice ErrorData
	return json.Unmarshal(e.Data, &advice) == nil && advice.Retryable
}

// IsCode says whether err is an answer of the sidecar with this code.
func IsCode(err error, code int64) bool {
	var answered *ResponseError
	return errors.As(err, &answered) && answered.Code == code
}
