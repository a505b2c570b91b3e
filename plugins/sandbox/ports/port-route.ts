import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import type { PortAddress } from '../suppliers/supplier';

/** How one request reaches a port. */
export interface PortRoute {
  /** The address with the path and query that the instance sees. */
  readonly target: string;
  /** One connection per request: another instance may get the address of one that has ended. */
  readonly agent: Agent | false;
  /** What the supplier itself wants to see. */
  readonly headers: Readonly<Record<string, string>>;
  /** Ends a connection that was opened. */
  close(): void;
}

/** Returns the route to a path of a port, with the connection already open where the driver opens it. */
export async function openPortRoute({ url, headers, connect }: PortAddress, path: string): Promise<PortRoute> {
  const target = `${url}${path}`;
  if (connect === undefined) return { target, agent: false, headers, close: () => undefined };
  const socket = await connect();
  return { target, agent: new ConnectedAgent(socket), headers, close: () => socket.destroy() };
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
