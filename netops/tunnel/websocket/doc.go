// Package websocket carries the datagrams of a tunnel through a WebSocket connection (RFC 6455), for paths on which UDP
// does not get through. The client's gateway connects to the server's; WireGuard knows nothing of it, and goes on
// inside, so that who ends TLS learns nothing but sizes and times.
//
// Both ends have a UDP socket in the gateway's network namespace for each tunnel. The client's receives the packets
// that WireGuard sends with a mark (netops.MarkCarried), to whatever endpoint, and returns packets with that endpoint
// as source. The server's sends to WireGuard's listen port, and gets the answers. Nothing is stored: packets that no
// connection carries within 50 ms are dropped, as on any other path.
package websocket
