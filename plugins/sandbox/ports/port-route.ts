import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import type { PortAddress } from '../suppliers/supplier';

/** How one request reaches a port. */
export interface PortRoute {
  /** The address with the path and query that the instance sees. */
  readonly target: string;
  /** The agent for one request. It never reuses a connection, because the address of an ended instance may go to another one. */
  readonly agent: Agent | false;
  /** Headers that the supplier itself requires. */
  readonly headers: Readonly<Record<string, string>>;
  /** Closes the connection that was opened. */
  close(): void;
}

/** Returns the route to a path of a port, with the connection already open where the driver opens it. */
export async function openPortRoute({ url, headers, connect }: PortAddress, path: string): Promise<PortRoute> {
  const target = `${url}${path}`;
  if (connect === undefined) return { target, agent: false, headers, close: () => undefined };
  const socket = await connect();
  return { target, agent: new ConnectedAgent(socket), headers, close: () => socket.destroy() };
}

/** An agent that sends one request over an open connection. */
class ConnectedAgent extends Agent {
  constructor(private readonly socket: Socket) {
    super();
  }

  override createConnection(): Socket {
    return this.socket;
  }
}
