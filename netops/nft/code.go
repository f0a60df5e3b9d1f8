package nft

import (
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// matchReg is the register for the operands of matches and the values of statements.
const matchReg = unix.NFT_REG_1

// compare loads a field and compares it with a value. The length of the value is the length of the comparison.
func compare(load expr.Any, op expr.CmpOp, value []byte) []expr.Any {
	return []expr.Any{load, &expr.Cmp{Op: op, Register: matchReg, Data: value}}
}

// compareBits is compare with a mask.
func compareBits(load expr.Any, mask []byte, op expr.CmpOp, value []byte) []expr.Any {
	return append([]expr.Any{load, bitwise(mask, make([]byte, len(mask)))}, compare(nil, op, value)[1:]...)
}

// bitwise masks the register and then inverts the bits of xor.
func bitwise(mask, xor []byte) expr.Any {
	return &expr.Bitwise{SourceRegister: matchReg, DestRegister: matchReg, Len: uint32(len(mask)), Mask: mask, Xor: xor}
}

// anyOf matches if one of the bits is set.
func anyOf(load expr.Any, mask []byte) []expr.Any {
	return compareBits(load, mask, expr.CmpOpNeq, make([]byte, len(mask)))
}

func meta(key expr.MetaKey) expr.Any { return &expr.Meta{Key: key, Register: matchReg} }

func ct(key expr.CtKey) expr.Any { return &expr.Ct{Key: key, Register: matchReg} }

// value loads a constant into the register.
func value(data []byte) expr.Any { return &expr.Immediate{Register: matchReg, Data: data} }

// native encodes a number that is not from a packet in the machine's byte order, as the kernel does.
func native(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

func opText(op expr.CmpOp) string {
	if op == expr.CmpOpNeq {
		return "!= "
	}
	return ""
}
