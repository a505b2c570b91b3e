/** A request in one form for all dialects: each dialect reads into it and writes from it. */
export interface Conversation {
  /** The instructions before the conversation, as text; may be empty. */
  readonly instructions: readonly TextPart[];
  readonly turns: readonly Turn[];
  /** Whether the last turn is the beginning of the answer, which the model continues. Absent: the last turn is complete, and a new answer follows. */
  readonly isBegun?: boolean | undefined;
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  /** Whether the model may call several tools at once; undefined: the dialect's default. */
  readonly parallelTools?: boolean | undefined;
  /** undefined: plain text. */
  readonly outputFormat?: OutputFormat | undefined;
  /** The most output tokens of one choice; undefined: the request names no limit. */
  readonly maxTokens?: number | undefined;
  /** How many answers the client wants, 1 or more. */
  readonly choices: number;
  readonly stream: boolean;
  readonly stop: readonly string[];
  /** From 0 to 2, as in Chat; Messages takes at most 1. */
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly seed?: number | undefined;
  readonly reasoning?: Reasoning | undefined;
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined;
  /** The name of a prompt whose cache the vendor may reuse. */
  readonly cacheKey?: string | undefined;
  /** An id of the person behind the call, for the vendor's protection against abuse. */
  readonly user?: string | undefined;
}

/** What one side says before the other answers. Two turns of one side may follow each other. */
export interface Turn {
  /** `system`: instructions inside the conversation. */
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
  readonly is: 'text';
  readonly text: string;
}

/** Bytes inside the request, or an address from which the vendor fetches them. */
export type Source =
  | { readonly base64: string; readonly mediaType: string }
  | { readonly url: string; readonly mediaType?: string | undefined };

/** An image. */
export interface ImagePart {
  readonly is: 'image';
  readonly source: Source;
  readonly detail?: 'low' | 'high' | 'auto' | undefined;
}

/** A document, such as a PDF, or the text of one. */
export interface DocumentPart {
  readonly is: 'document';
  readonly source: Source | { readonly text: string };
  readonly name?: string | undefined;
}

/** Sound in a turn of the user. */
export interface AudioPart {
  readonly is: 'audio';
  readonly base64: string;
  /** The audio format, such as `wav` or `mp3`. */
  readonly format: string;
}

/** A call of a tool, in a turn of the assistant. */
export interface ToolCallPart {
  readonly is: 'tool_call';
  readonly id: string;
  readonly name: string;
  /** JSON of an object, or any text for a tool with `input: 'text'`. */
  readonly input: string;
  readonly isText?: boolean | undefined;
}

/** The result of a tool call, in a turn of the user. */
export interface ToolResultPart {
  readonly is: 'tool_result';
  /** The id of the call that it answers. */
  readonly id: string;
  readonly parts: readonly (TextPart | ImagePart | DocumentPart)[];
  readonly isError?: boolean | undefined;
  /** Whether the call was one of a tool with `input: 'text'`. */
  readonly isText?: boolean | undefined;
}

/** The model's reasoning, in a turn of the assistant. A part without a signature is sent to no upstream. */
export interface ReasoningPart {
  readonly is: 'reasoning';
  /** The visible part of the reasoning; may be empty. */
  readonly text: string;
  readonly signature?: Signature | undefined;
}

/** The model's reason for refusing to answer, in a turn of the assistant. */
export interface RefusalPart {
  readonly is: 'refusal';
  readonly text: string;
}

/** An opaque value that is valid only where it was made. */
export interface Signature {
  /** The name of the upstream that made it. */
  readonly upstream: string;
  /** The dialect in which the upstream made it. */
  readonly dialect: string;
  /** The form in which the dialect's writer sends it back: any text. */
  readonly value: string;
}

/** A tool that runs at the client. */
export interface Tool {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema of the input; undefined where the tool takes none, or takes text. */
  readonly schema?: unknown;
  /** Whether the vendor must hold the input to the schema; undefined: the dialect's default, which is no in all but Responses. */
  readonly strict?: boolean | undefined;
  /** `text`: the input is free text and no JSON (a custom tool). */
  readonly input: 'json' | 'text';
  /** The grammar of a custom tool, as its dialect has it. */
  readonly format?: unknown;
}

/** `auto`: the model decides; `required`: it calls at least one; `tool`: it calls this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string; readonly input?: Tool['input'] };

/** The form that the answer must have: any JSON, or JSON of a schema. */
export type OutputFormat =
  | { readonly is: 'json' }
  | {
      readonly is: 'schema';
      readonly name?: string | undefined;
      readonly description?: string | undefined;
      readonly schema: unknown;
      readonly strict?: boolean | undefined;
    };

/** How much the model should reason, in words or tokens, as the call says it. */
export interface Reasoning {
  readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined;
  readonly budgetTokens?: number | undefined;
  /** Whether the client wants a summary of the reasoning in the answer. */
  readonly isShown?: boolean | undefined;
}

/** A feature of a request for which a dialect may have no place, by its name in the conversation. */
export type Feature = Exclude<keyof Conversation, 'turns' | 'stream' | 'instructions'> | Part['is'] | 'system';

/** The request has something that cannot be carried to another dialect. */
export class NotTranslatable extends Error {
  override readonly name = 'NotTranslatable';

  constructor(
    /** The member or part, in the client's words. A writer names a `Feature`, which the gateway replaces by the client's word. */
    readonly what: string,
    /** The reason: the end of a sentence that begins with the name. */
    readonly why: string,
  ) {
    super(`\`${what}\` ${why}`);
  }
}
