import type { ProgramEnd } from '../../support/agents';
import type { FeatureName } from '../features';
import type { Part, ToolCall } from '../vendor/turn';
import type { VendorCall } from '../vendor/vendor';

/** Where a client sends its calls. */
export interface Point {
  /** Of the gateway, without a path. */
  readonly url: string;
  readonly key: string;
  readonly model: string;
}

/** What points a client at the gateway: environment variables and files below the home. docs/clients.md shows it. */
export interface Setup {
  readonly env: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  /** The lines of a program, where it takes neither. */
  readonly code?: string;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  /** What a test needs, such as telemetry switched off; nobody needs it to use the gateway. */
  readonly env: Readonly<Record<string, string>>;
  /** A file below the home that is read at the end. */
  readonly leaves?: string;
}

/** What a client came to, as far as features look at it. */
export interface Outcome {
  /** The client reported success. */
  readonly succeeded: boolean;
  /** The text of the last answer. */
  readonly text: string;
  /** Tokens of all calls as the client counted them: all input, cached or not, and output. */
  readonly usage: { readonly input: number; readonly output: number } | undefined;
  /** What it shows of the model's thoughts. */
  readonly thoughts?: string;
  /** The models that it listed. */
  readonly models?: readonly string[];
}

/** The dialects of upstreams that all protocols of clients are translated to. */
export const UPSTREAMS = ['messages', 'chat', 'responses'] as const;
export type Upstream = (typeof UPSTREAMS)[number];

export interface Ask {
  readonly feature: FeatureName;
  readonly prompt: string;
  readonly point: Point;
  /** The upstream speaks another protocol, which has no tools that run at the client's vendor. */
  readonly isTranslated?: boolean;
}

export interface Client {
  readonly id: string;
  readonly title: string;
  /** What stands for one: an agent is a program of its own, an SDK is used by the drivers of this test. */
  readonly kind: 'agent' | 'SDK';
  /** The npm package whose version the page names, and those that it is used with. */
  readonly packages: readonly [string, ...string[]];
  readonly protocol: 'Messages' | 'Chat' | 'Responses';
  readonly model: string;
  /** What the upstream speaks. Absent: the client's own protocol. */
  readonly upstream?: Upstream;
  setup(point: Point): Setup;
  /** What its users should know, for the page. */
  readonly note?: string;
  command(ask: Ask): Command;
  read(end: ProgramEnd): Outcome;
  /** Its own tools, as a model calls them. */
  readonly tools: {
    read(path: string): ToolCall;
    /** Loads what it defers. */
    load?: readonly Part[];
    /** What shows that they are loaded; nothing is wrong when it gives nothing. */
    loaded?(calls: readonly VendorCall[]): readonly (string | undefined)[];
    /** The same two where tools are told in another protocol, which cannot defer any. */
    readonly translated?: Pick<Client['tools'], 'load' | 'loaded'>;
    /** Asks for a search that runs at the vendor in a call of its own. */
    search?: ToolCall;
    /** An image comes with the prompt, without a tool. */
    seesByItself?: boolean;
  };
  /** It asks again by itself when a stream breaks off. */
  readonly retries: boolean;
  /** Whether a call is part of the conversation; agents ask for titles beside it. */
  isConversation(call: VendorCall): boolean;
  /** What it does not have, and why. */
  readonly lacks: Partial<Readonly<Record<FeatureName, string>>>;
}

export function call(name: string, input: Readonly<Record<string, unknown>>): ToolCall {
  return { kind: 'call', name, input };
}

/** The body of a call as text. */
export function bodyText(asked: VendorCall | undefined): string {
  return JSON.stringify(asked?.body ?? '');
}

/** What is wrong where a vendor was not told of a tool in full. */
export function isTold(asked: VendorCall | undefined, tool: string): string | undefined {
  return asked?.tools.includes(tool) === true ? undefined : `the tool ${tool} was not told`;
}

/** What is wrong where a vendor was not told what a search for tools has found. */
export function isFound(asked: VendorCall | undefined): string | undefined {
  return /can be called now: /.test(bodyText(asked)) ? undefined : 'what was found was not sent back';
}

/** The JSON values that a program printed, one a line. */
export function jsonLines({ lines }: ProgramEnd): readonly unknown[] {
  return lines.flatMap((line) => {
    try {
      return line.startsWith('{') ? [JSON.parse(line) as unknown] : [];
    } catch {
      return [];
    }
  });
}
