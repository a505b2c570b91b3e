/** A request in a form that all dialects share: each dialect can be converted to it and from it. */
export interface Conversation {
  /** The instructions before the first turn, as text; may be empty. */
  readonly instructions: readonly TextPart[];
  readonly turns: readonly Turn[];
  /** Whether the last turn is the beginning of the answer, which the model must continue. Absent: the last turn is complete. */
  readonly isBegun?: boolean | undefined;
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  /** Whether the model may call several tools in parallel; undefined: the dialect's default. */
  readonly parallelTools?: boolean | undefined;
  /** The format that the answer must have; undefined for plain text. */
  readonly outputFormat?: OutputFormat | undefined;
  /** The most output tokens of one choice; undefined if the request sets no limit. */
  readonly maxTokens?: number | undefined;
  /** How many choices the client requests, 1 or more. */
  readonly choices: number;
  readonly stream: boolean;
  readonly stop: readonly string[];
  /** The sampling temperature, 0 to 2 as in Chat; Messages accepts at most 1. */
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly seed?: number | undefined;
  readonly reasoning?: Reasoning | undefined;
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined;
  /** The key with which the client selects a part of the vendor's prompt cache. Calls with the same key share cached prompts. */
  readonly cacheKey?: string | undefined;
  /** An id of the end user, with which the vendor recognizes abuse. */
  readonly user?: string | undefined;
}

/** What one side says before the other answers. Consecutive turns may be of the same side. */
export interface Turn {
  /** The side that speaks. `system`: instructions inside the conversation. */
  readonly role: 'user' | 'assistant' | 'system';
  readonly parts: readonly Part[];
}

/** A part of a turn; its member `is` names its kind. */
export type Part =
  | TextPart
  | ImagePart
  | DocumentPart
  | AudioPart
  | ToolCallPart
  | ToolResultPart
  | ReasoningPart
  | RefusalPart;

/** Text of the user or the assistant. */
export interface TextPart {
  readonly kind: 'text';
  readonly text: string;
}

/** The bytes of the content inside the request, or a URL from which the vendor fetches them. */
export type Source =
  | { readonly base64: string; readonly mediaType: string }
  | { readonly url: string; readonly mediaType?: string | undefined };

/** An image. */
export interface ImagePart {
  readonly kind: 'image';
  readonly source: Source;
  readonly detail?: 'low' | 'high' | 'auto' | undefined;
}

/** A document, such as a PDF or plain text. */
export interface DocumentPart {
  readonly kind: 'document';
  readonly source: Source | { readonly text: string };
  readonly name?: string | undefined;
}

/** Audio in a turn of the user. */
export interface AudioPart {
  readonly kind: 'audio';
  readonly base64: string;
  /** The audio format, such as `wav` or `mp3`. */
  readonly format: string;
}

/** A call of a tool, in a turn of the assistant. */
export interface ToolCallPart {
  readonly kind: 'tool_call';
  readonly id: string;
  readonly name: string;
  /** The tool's input: JSON of an object, or any text for a tool with `input: 'text'`. */
  readonly input: string;
  readonly isText?: boolean | undefined;
}

/** The result of a tool call, in a turn of the user. */
export interface ToolResultPart {
  readonly kind: 'tool_result';
  /** The id of the tool call that produced the result. */
  readonly id: string;
  readonly parts: readonly (TextPart | ImagePart | DocumentPart)[];
  readonly isError?: boolean | undefined;
  /** Whether the result belongs to a call of a tool with `input: 'text'`. */
  readonly isText?: boolean | undefined;
}

/** The model's reasoning, in a turn of the assistant. The gateway sends a part without a signature to no upstream. */
export interface ReasoningPart {
  readonly kind: 'reasoning';
  /** The visible part of the reasoning; may be empty. */
  readonly text: string;
  readonly signature?: Signature | undefined;
}

/** The text with which the model refuses to answer, in a turn of the assistant. */
export interface RefusalPart {
  readonly kind: 'refusal';
  readonly text: string;
}

/** An opaque value of an upstream. No other upstream accepts it. */
export interface Signature {
  /** The name of the upstream that made the signature. */
  readonly upstream: string;
  /** The dialect in which the upstream made the signature. */
  readonly dialect: string;
  /** The signature's text, which the dialect's request writer sends back to the upstream. */
  readonly value: string;
}

/** A tool that the client runs. */
export interface Tool {
  readonly name: string;
  readonly description?: string | undefined;
  /** The JSON Schema of the input; undefined if the tool has no input, or text input. */
  readonly schema?: unknown;
  /** Whether the vendor must force the input to match the schema; undefined: the dialect's default, which is yes only in Responses. */
  readonly strict?: boolean | undefined;
  /** The kind of input. `text`: free text instead of JSON (a custom tool). */
  readonly input: 'json' | 'text';
  /** The grammar of a custom tool's input, in the form of its dialect. */
  readonly format?: unknown;
}

/** Which tools the model must call. `auto`: the model decides; `none`: no tool; `required`: at least one tool; `tool`: the named tool. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string; readonly input?: Tool['input'] };

/** The format that the answer must have: any JSON, or JSON that matches a schema. */
export type OutputFormat =
  | { readonly kind: 'json' }
  | {
      readonly kind: 'schema';
      readonly name?: string | undefined;
      readonly description?: string | undefined;
      readonly schema: unknown;
      readonly strict?: boolean | undefined;
    };

/** How much the model should reason, as a level or in tokens, as the client requests it. */
export interface Reasoning {
  readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined;
  readonly budgetTokens?: number | undefined;
  /** Whether the answer must contain a summary of the reasoning. */
  readonly isShown?: boolean | undefined;
}

/** A feature of a request that a dialect may be unable to express, by its name in the `Conversation`. */
export type Feature = Exclude<keyof Conversation, 'turns' | 'stream' | 'instructions'> | Part['kind'] | 'system';

/** Reports that a request contains something that cannot be translated into another dialect. */
export class NotTranslatable extends Error {
  override readonly name = 'NotTranslatable';

  constructor(
    /** The feature that cannot be translated, as the client names it. A request writer passes a `Feature`; the gateway replaces it by that name. */
    readonly what: string,
    /** Why it cannot be translated: the end of a sentence that begins with `what`. */
    readonly why: string,
  ) {
    super(`\`${what}\` ${why}`);
  }
}
