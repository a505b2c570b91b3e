import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { promisify } from 'node:util';
import { PortClosed } from '../supplier';

/** The network of one instance, and how to start a program in it. */
interface JoinedNetwork {
  /** The id of the network. No other instance's network has the same id, not even that of an ended instance. */
  readonly name: string;
  /** The beginning of a command line that starts a program in the network. The program and its own arguments follow. */
  readonly words: readonly string[];
}

/** Returns the network of a running container. `file` is the engine's file for this network; the engine never reuses the file's name. */
export function joinedNetwork(name: string, file: string): JoinedNetwork {
  return { name, words: ['nsenter', `--net=${file}`, '--'] };
}

/** Tests whether this process may start programs in other networks, by joining its own. */
export function canJoinNetworks(): Promise<boolean> {
  const { words } = joinedNetwork('', `/proc/${process.pid}/ns/net`);
  const [program = '', ...rest] = [...words, 'true'];
  return promisify(execFile)(program, rest).then(
    () => true,
    () => false,
  );
}

/**
 * The program that runs in an instance's network. It opens the connections that the gateway requests and passes their sockets to the
 * gateway. It pauses each socket, because data that the program itself read would be lost.
 */
const PROGRAM = `
process.on('disconnect', () => process.exit());
process.on('message', ({ id, host, port }) => {
  const socket = new (require('node:net').Socket)().pause();
  socket.once('error', ({ code }) => process.send({ id, code }));
  socket.connect(port, host, () => process.send({ id }, socket));
});`;

const IDLE_MS = 60_000;

interface Answer {
  readonly id: number;
  readonly code?: string;
}

interface Dialling {
  readonly child: ChildProcess;
  readonly waiting: Map<number, { resolve(socket: Socket): void; reject(error: Error): void }>;
  readonly idle: NodeJS.Timeout;
}

/** Opens connections in the networks of instances. It keeps one process for each instance that was used recently. */
export class Dialer {
  readonly #dialling = new Map<string, Dialling>();
  #lastId = 0;

  /** Opens a connection to an instance. @throws PortClosed */
  dial(network: JoinedNetwork, host: string, port: number): Promise<Socket> {
    const { child, waiting, idle } = this.#dialling.get(network.name) ?? this.#start(network);
    idle.refresh();
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      child.send({ id, host, port }, (error) => {
        if (error !== null) reject(new PortClosed('the network of the instance cannot be joined', { cause: error }));
      });
    });
  }

  #start({ name, words }: JoinedNetwork): Dialling {
    const [program = '', ...rest] = [...words, process.execPath, '-e', PROGRAM];
    const child = spawn(program, rest, { cwd: '/', env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    const waiting: Dialling['waiting'] = new Map();
    const idle = setTimeout(() => child.kill(), IDLE_MS).unref();
    const dialling = { child, waiting, idle };
    this.#dialling.set(name, dialling);
    const end = () => {
      clearTimeout(idle);
      if (this.#dialling.get(name) === dialling) this.#dialling.delete(name);
      for (const { reject } of waiting.values()) reject(new PortClosed('the network of the instance no longer exists'));
    };
    child.once('exit', end);
    child.once('error', end);
    child.on('message', ({ id, code }: Answer, socket) => {
      if (socket instanceof Socket) waiting.get(id)?.resolve(socket);
      else waiting.get(id)?.reject(new PortClosed(`the connection was refused: ${code}`));
      waiting.delete(id);
    });
    child.unref();
    child.channel?.unref();
    return dialling;
  }

  /** Ends the process of an instance that is being ended. */
  end({ name }: Pick<JoinedNetwork, 'name'>): void {
    this.#dialling.get(name)?.child.kill();
  }

  /** Ends all processes. Open connections continue. */
  async close(): Promise<void> {
    const ends = [...this.#dialling.values()].map(({ child }) => {
      const end = once(child, 'exit');
      child.kill();
      return end;
    });
    await Promise.all(ends);
  }
}
