package acp

import (
	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// shape is what of an agent's lines is the protocol, which no secret masks.
var shape = &journal.Shape{Names: wire.Names(), Words: wire.Words(), Free: wire.Open(), Whole: wire.Whole()}
