import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import type { PortAddress } from '../../../core/supplier';

/** How http-proxy reaches a port. */
export interface Way {
  readonly target: string;
  readonly agent?: Agent;
  /** Ends a connection that was opened and is not used. */
  close(): void;
}

/**
 * Returns the way to a path of a port, with the connection already open where the driver opens it: http-proxy sends the
 * client's headers, and with them its credentials, if they cannot be removed as soon as the request is made.
 */
export async function openWay({ url, connect }: PortAddress, path: string): Promise<Way> {
  const target = `${url}${path}`;
  if (connect === undefined) return { target, close: () => undefined };
  const socket = await connect();
  return { target, agent: new ConnectedAgent(socket), close: () => socket.destroy() };
}

/** Sends one request over a connection that is there. */
class ConnectedAgent extends Agent {
  constructor(private readonly socket: Socket) {
    super();
  }

  override createConnection(): Socket {
    return this.socket;
  }
}
