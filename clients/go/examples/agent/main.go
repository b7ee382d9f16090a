// An agent in a hundred lines: it assembles before each call of its model, offers the sidecar's tools, and commits
// each turn. The model is scripted, so that the example runs anywhere; put a real one in place of say.
//
//	go run ./examples/agent "What is the plan?" "And then?"
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	sidecar "contextsidecar"
)

type chat struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A scripted model answers what it was asked last, and summarises in a few words.
type scripted struct{}

func (scripted) say(system string, messages []chat) string {
	last := messages[len(messages)-1]
	return fmt.Sprintf("You asked %q; I have seen %d messages and %d characters of instructions.",
		last.Content, len(messages), len(system))
}

// Complete lets the sidecar use the model too, for its summaries.
func (scripted) Complete(_ context.Context, params *sidecar.CompleteRuntimeParams) (*sidecar.CompleteRuntimeResult, error) {
	return &sidecar.CompleteRuntimeResult{Text: fmt.Sprintf("A %s of %d messages.", params.Purpose, len(params.Messages))}, nil
}

func message(role, content string) sidecar.Message {
	encoded, err := json.Marshal(chat{role, content})
	if err != nil {
		panic(err) // two strings have JSON
	}
	return encoded
}

func turn(ctx context.Context, client *sidecar.Client, number int, prompt string) (string, error) {
	const session = "example"
	asked := message("user", prompt)
	params := &sidecar.AssembleContextParams{SessionID: session, TokenBudget: 8000, Messages: []sidecar.Message{asked}}
	seen, err := client.Assemble(ctx, params)
	if err != nil {
		return "", err
	}
	messages := make([]chat, len(seen.Messages))
	for at, raw := range seen.Messages {
		if err := json.Unmarshal(raw, &messages[at]); err != nil {
			return "", err
		}
	}
	messages[len(messages)-1].Content += seen.UserMessageAppend
	said := scripted{}.say("You are an agent."+seen.SystemPromptAddition, messages)
	// The key names the turn: a commit whose answer was lost may be sent again.
	_, err = client.ContextCommitTurn(ctx, &sidecar.CommitTurnContextParams{
		SessionID:      session,
		AdvancementKey: fmt.Sprintf("turn-%d", number),
		Messages:       []sidecar.Message{asked, message("assistant", said)},
	})
	return said, err
}

func main() {
	options := sidecar.Options{Host: sidecar.HostInfo{ID: "go-example"}, Completer: scripted{}, Stderr: os.Stderr}
	if command := os.Getenv("CONTEXT_SIDECAR"); command != "" {
		options.Command = strings.Fields(command)
	}
	client := sidecar.New(options)
	defer client.Close()
	ctx := context.Background()
	offer, err := client.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("engine %s, tools %s\n", offer.Engine.ID, strings.Join(offer.Tools, " "))
	for number, prompt := range os.Args[1:] {
		said, err := turn(ctx, client, number, prompt)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(said)
	}
}
