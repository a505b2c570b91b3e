/** One model of a request for all dialects: each dialect reads into it and writes from it. */
export interface Conversation {
  /** What stands before the conversation: text alone. Empty where there is nothing. */
  readonly instructions: readonly TextPart[];
  readonly turns: readonly Turn[];
  /** The last turn is the beginning of the answer, and the model goes on from there. Absent: it is whole, and another answer follows. */
  readonly isBegun?: boolean | undefined;
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  /** Whether the model may call several tools at once; undefined: as the dialect assumes. */
  readonly parallelTools?: boolean | undefined;
  /** undefined: plain text. */
  readonly outputFormat?: OutputFormat | undefined;
  /** The most output tokens of one choice; undefined: none is named. */
  readonly maxTokens?: number | undefined;
  /** How many answers are wanted, 1 or more. */
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
  /** Names a prompt whose cache may be used again. */
  readonly cacheKey?: string | undefined;
  /** Names the person behind the call for the vendor's protection against abuse. */
  readonly user?: string | undefined;
}

/** What one side says in one go. Two turns of one side may follow each other. */
export interface Turn {
  /** `system`: instructions that stand inside the conversation. */
  readonly role: 'user' | 'assistant' | 'system';
  readonly parts: readonly Part[];
}

/** A part of a turn, told by its member `is`. */
export type Part =
  | TextPart
  | ImagePart
  | DocumentPart
  | AudioPart
  | ToolCallPart
  | ToolResultPart
  | ReasoningPart
  | RefusalPart;

/** Text of either side. */
export interface TextPart {
  readonly is: 'text';
  readonly text: string;
}

/** Bytes that stand in the request, or an address at which the vendor fetches them. */
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
  /** Such as `wav` or `mp3`. */
  readonly format: string;
}

/** In a turn of the assistant. */
export interface ToolCallPart {
  readonly is: 'tool_call';
  readonly id: string;
  readonly name: string;
  /** JSON of an object, or any text for a tool with `input: 'text'`. */
  readonly input: string;
  readonly isText?: boolean | undefined;
  /** Goes back to where it came from with the call (Gemini). */
  readonly signature?: Signature | undefined;
}

/** In a turn of the user. */
export interface ToolResultPart {
  readonly is: 'tool_result';
  /** The id of the call that it answers. */
  readonly id: string;
  readonly parts: readonly (TextPart | ImagePart | DocumentPart)[];
  readonly isError?: boolean | undefined;
  /** The call was one of a tool with `input: 'text'`. */
  readonly isText?: boolean | undefined;
}

/** What the model thought, in a turn of the assistant. A part without signature is told to nobody. */
export interface ReasoningPart {
  readonly is: 'reasoning';
  /** What of it is shown; may be empty. */
  readonly text: string;
  readonly signature?: Signature | undefined;
}

/** Why the model would not answer, in a turn of the assistant. */
export interface RefusalPart {
  readonly is: 'refusal';
  readonly text: string;
}

/** Opaque, and good only where it was made. */
export interface Signature {
  /** The name of the upstream that made it. */
  readonly upstream: string;
  /** The dialect in which it was made. */
  readonly dialect: string;
  /** As the dialect's writer needs it to send it back: any text. */
  readonly value: string;
}

/** A tool that runs at the client. */
export interface Tool {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema of the input; undefined where the tool takes none, or takes text. */
  readonly schema?: unknown;
  /** Whether the vendor must hold the input to the schema; undefined: as the dialect assumes, which is no in all but Responses. */
  readonly strict?: boolean | undefined;
  /** `text`: the input is free text and no JSON (a custom tool). */
  readonly input: 'json' | 'text';
  /** The grammar of a custom tool, as its dialect has it. */
  readonly format?: unknown;
}

/** `auto`: the model decides; `required`: it calls at least one; or the tool that it calls. */
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

/** How much the model is to think, in words or tokens, as the call says it. */
export interface Reasoning {
  readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined;
  readonly budgetTokens?: number | undefined;
  /** Whether its summary is wanted in the answer. */
  readonly isShown?: boolean | undefined;
}

/** What a request has that a dialect may have no place for, by its name in the model. */
export type Feature = Exclude<keyof Conversation, 'turns' | 'stream' | 'instructions'> | Part['is'] | 'system';

/** A call has something that cannot be carried over. */
export class NotTranslatable extends Error {
  override readonly name = 'NotTranslatable';

  constructor(
    /** The member or part, as the client's dialect names it; a writer names a `Feature`, and the client's word for it is put in its place. */
    readonly what: string,
    /** Why not: the end of a sentence that begins with the name. */
    readonly why: string,
  ) {
    super(`\`${what}\` ${why}`);
  }
}
