package nft

import (
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// matchReg is the register in which matches put what they compare, and statements what they write.
const matchReg = unix.NFT_REG_1

// compare loads something and compares it with a value, whose length says how much of it.
func compare(load expr.Any, op expr.CmpOp, value []byte) []expr.Any {
	return []expr.Any{load, &expr.Cmp{Op: op, Register: matchReg, Data: value}}
}

// compareBits is compare for those bits that the mask has.
func compareBits(load expr.Any, mask []byte, op expr.CmpOp, value []byte) []expr.Any {
	return append([]expr.Any{load, bitwise(mask, make([]byte, len(mask)))}, compare(nil, op, value)[1:]...)
}

// bitwise keeps those bits of the register that the mask has, and then flips some.
func bitwise(mask, xor []byte) expr.Any {
	return &expr.Bitwise{SourceRegister: matchReg, DestRegister: matchReg, Len: uint32(len(mask)), Mask: mask, Xor: xor}
}

// anyOf matches where one of the bits is set.
func anyOf(load expr.Any, mask []byte) []expr.Any {
	return compareBits(load, mask, expr.CmpOpNeq, make([]byte, len(mask)))
}

func meta(key expr.MetaKey) expr.Any { return &expr.Meta{Key: key, Register: matchReg} }

func ct(key expr.CtKey) expr.Any { return &expr.Ct{Key: key, Register: matchReg} }

// value puts a constant into the register.
func value(data []byte) expr.Any { return &expr.Immediate{Register: matchReg, Data: data} }

// native is a number as the kernel keeps what is of no packet: in the byte order of the machine.
func native(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

func opText(op expr.CmpOp) string {
	if op == expr.CmpOpNeq {
		return "!= "
	}
	return ""
}
