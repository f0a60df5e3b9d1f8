package netops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of linux/netfilter_ipv4/ip_tables.h and x_tables.h.
const (
	getInfo    = 64 // IPT_SO_GET_INFO
	getEntries = 65 // IPT_SO_GET_ENTRIES

	nameLen       = 32 // XT_TABLE_MAXNAMELEN
	infoLen       = 84 // struct ipt_getinfo
	entriesHeader = 40 // struct ipt_get_entries, before the entries
	hookForward   = 2  // NF_INET_FORWARD
	entryOffset   = 88 // of target_offset in struct ipt_entry
	verdictOffset = 32 // of verdict in struct xt_standard_target
	verdictDrop   = -1 // -NF_DROP - 1
)

// legacyTables lists the tables of iptables-legacy that the namespace of the reading thread has.
const legacyTables = "/proc/thread-self/net/ip_tables_names"

// LegacyForwardDrop reports whether iptables-legacy, in the namespace of the calling thread, drops forwarded packets
// that no rule accepts: the policy of chain FORWARD of its table filter. Namespaces that never had the table are not
// given one. It takes CAP_NET_ADMIN.
func LegacyForwardDrop() (bool, error) {
	names, err := os.ReadFile(legacyTables)
	if errors.Is(err, os.ErrNotExist) { // a kernel without them
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !slices.Contains(strings.Fields(string(names)), "filter") {
		return false, nil
	}
	drop, err := legacyPolicyDrops()
	if err != nil {
		return false, fmt.Errorf("read table filter of iptables-legacy: %w", err)
	}
	return drop, nil
}

// legacyPolicyDrops reads the table. A base chain's policy is its last entry, where its underflow points.
func legacyPolicyDrops() (bool, error) {
	// Any IPv4 socket will do: the options belong to the namespace.
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(socket) }()
	info := make([]byte, infoLen)
	copy(info, "filter")
	if err := getOption(socket, getInfo, info); err != nil {
		return false, err
	}
	// name[32], valid_hooks, hook_entry[5], underflow[5], num_entries, size
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(info[nameLen+4*i:]) }
	underflow, size := int(word(1+5+hookForward)), int(word(1+5+5+1))
	table := make([]byte, entriesHeader+size)
	copy(table, "filter")
	binary.NativeEndian.PutUint32(table[nameLen:], uint32(size))
	if err := getOption(socket, getEntries, table); err != nil {
		return false, err
	}
	entries := table[entriesHeader:]
	if underflow+entryOffset+2 > len(entries) {
		return false, fmt.Errorf("policy at byte %d of %d", underflow, len(entries))
	}
	verdict := underflow + int(binary.NativeEndian.Uint16(entries[underflow+entryOffset:])) + verdictOffset
	if verdict+4 > len(entries) {
		return false, fmt.Errorf("verdict at byte %d of %d", verdict, len(entries))
	}
	return int32(binary.NativeEndian.Uint32(entries[verdict:])) == verdictDrop, nil
}

// getOption asks for an option whose value goes both ways.
func getOption(socket, option int, value []byte) error {
	length := uint32(len(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(socket), unix.SOL_IP, uintptr(option),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(unsafe.Pointer(&length)), 0) //nolint:gosec // package unix passes no value in
	if errno != 0 {
		return errno
	}
	return nil
}
