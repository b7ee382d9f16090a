package contextsidecar

import (
	"container/list"
	"fmt"
	"sync"
)

// rememberedSessions bounds for how many sessions the latest answer is kept as a base for edits.
const rememberedSessions = 64

// An assembled is the latest answer of a session. Its zero value is no base.
type assembled struct {
	session  string
	id       string
	messages []Message
}

// answers keeps the latest answer of each session of one connection: another sidecar knows none of them.
type answers struct {
	mu     sync.Mutex
	byName map[string]*list.Element
	order  list.List
}

func (a *answers) latest(session string) assembled {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, ok := a.byName[session]; ok {
		return found.Value.(assembled)
	}
	return assembled{}
}

// complete gives a result its whole list and remembers it. The caller may change the list.
func (a *answers) complete(session string, base assembled, result *AssembleContextResult) error {
	if result.Edits != nil {
		whole, err := applied(base.messages, result.Edits)
		if err != nil {
			return err
		}
		result.Messages, result.Edits = whole, nil
	}
	kept := append([]Message(nil), result.Messages...)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil {
		a.byName = make(map[string]*list.Element)
	}
	if old, ok := a.byName[session]; ok {
		a.order.Remove(old)
	}
	a.byName[session] = a.order.PushBack(assembled{session, result.ResultID, kept})
	if a.order.Len() > rememberedSessions {
		oldest := a.order.Remove(a.order.Front()).(assembled)
		delete(a.byName, oldest.session)
	}
	return nil
}

// applied makes a new list of an earlier one. Positions are those of the earlier list, ascending.
func applied(previous []Message, edits []MessageEdit) ([]Message, error) {
	var whole []Message
	at := int64(0)
	for _, edit := range edits {
		end := edit.Start + edit.DeleteCount
		if edit.Start < at || edit.DeleteCount < 0 || end > int64(len(previous)) {
			return nil, fmt.Errorf("contextsidecar: an edit of [%d, %d) does not fit %d messages", edit.Start, end, len(previous))
		}
		whole = append(append(whole, previous[at:edit.Start]...), edit.Messages...)
		at = end
	}
	return append(whole, previous[at:]...), nil
}
