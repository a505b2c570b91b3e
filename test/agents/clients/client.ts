import type { ProgramEnd } from '../../support/agents';
import type { FeatureName } from '../features';
import type { Part, ToolCall } from '../vendor/turn';
import type { VendorCall } from '../vendor/vendor';

/** The address to which a client sends its calls. */
export interface Point {
  /** The URL of the gateway, without a path. */
  readonly url: string;
  readonly key: string;
  readonly model: string;
}

/** The configuration that directs a client to the gateway: environment variables and files below the home. docs/clients.md shows it. */
export interface Setup {
  readonly env: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  /** The source lines of a program that reads neither. */
  readonly code?: string;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  /** Variables for the test only, such as telemetry switched off. Users of the gateway do not need them. */
  readonly env: Readonly<Record<string, string>>;
  /** A file below the home that the test reads at the end. */
  readonly leaves?: string;
}

/** The result of a client, as far as features check it. */
export interface Outcome {
  /** Whether the client reported success. */
  readonly succeeded: boolean;
  /** The text of the last answer. */
  readonly text: string;
  /** Tokens of all calls as the client counted them: all input, cached or not, and output. */
  readonly usage: { readonly input: number; readonly output: number } | undefined;
  /** The model's reasoning that the client shows. */
  readonly thoughts?: string;
  /** The models that the client listed. */
  readonly models?: readonly string[];
}

/** The dialects of upstreams, into which every client protocol is translated. */
export const UPSTREAMS = ['messages', 'chat', 'responses'] as const;
export type Upstream = (typeof UPSTREAMS)[number];

export interface Ask {
  readonly feature: FeatureName;
  readonly prompt: string;
  readonly point: Point;
  /** Whether the upstream speaks another protocol, which lacks tools that run at the client's vendor. */
  readonly isTranslated?: boolean;
}

export interface Client {
  readonly id: string;
  readonly title: string;
  /** The kind of program: an agent runs by itself, an SDK is used by a driver of this test. */
  readonly kind: 'agent' | 'SDK';
  /** The npm package whose version the document shows, and those that it is used with. */
  readonly packages: readonly [string, ...string[]];
  readonly protocol: 'Messages' | 'Chat' | 'Responses';
  readonly model: string;
  /** The protocol of the upstream. Absent: the client's own. */
  readonly upstream?: Upstream;
  setup(point: Point): Setup;
  /** A note for users in the document. */
  readonly note?: string;
  command(ask: Ask): Command;
  read(end: ProgramEnd): Outcome;
  /** The client's own tools, as a model calls them. */
  readonly tools: {
    read(path: string): ToolCall;
    /** Returns the parts that load deferred tools. */
    load?: readonly Part[];
    /** Returns the failures if deferred tools were not loaded. */
    loaded?(calls: readonly VendorCall[]): readonly (string | undefined)[];
    /** `load` and `loaded` for an upstream whose protocol cannot defer tools. */
    readonly translated?: Pick<Client['tools'], 'load' | 'loaded'>;
    /** Requests a search that runs at the vendor in a separate call. */
    search?: ToolCall;
    /** Whether an image comes with the prompt, without a tool. */
    seesByItself?: boolean;
  };
  /** Whether it retries by itself when a stream is cut off. */
  readonly retries: boolean;
  /** Returns whether a call is part of the conversation. Agents also request titles. */
  isConversation(call: VendorCall): boolean;
  /** The features that the client lacks, and why. */
  readonly lacks: Partial<Readonly<Record<FeatureName, string>>>;
}

export function call(name: string, input: Readonly<Record<string, unknown>>): ToolCall {
  return { kind: 'call', name, input };
}

/** Returns the body of a call as text. */
export function bodyText(asked: VendorCall | undefined): string {
  return JSON.stringify(asked?.body ?? '');
}

/** Returns what is wrong if the request does not describe a tool completely. */
export function isTold(asked: VendorCall | undefined, tool: string): string | undefined {
  return asked?.tools.includes(tool) === true ? undefined : `the tool ${tool} was not told`;
}

/** Returns what is wrong if the request lacks the result of a search for tools. */
export function isFound(asked: VendorCall | undefined): string | undefined {
  return /can be called now: /.test(bodyText(asked)) ? undefined : 'what was found was not sent back';
}

/** Returns the JSON values that a program printed, one a line. */
export function jsonLines({ lines }: ProgramEnd): readonly unknown[] {
  return lines.flatMap((line) => {
    try {
      return line.startsWith('{') ? [JSON.parse(line) as unknown] : [];
    } catch {
      return [];
    }
  });
}
