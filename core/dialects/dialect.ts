import type { Variant } from '../catalog/price';
import type { Meter } from '../catalog/usage';

/**
 * What a part of a request means for its cost:
 * `free` has no influence; `bounded` is read by the vendor as it stands in the body; `outside` makes the vendor read something that is
 * not in the body, or that it unpacks; `priced` costs more than tokens at the model's price; `refused` cannot be billed.
 */
export type MemberClass = 'free' | 'bounded' | 'outside' | 'priced' | 'refused';

/**
 * Objects that a vendor keeps for the platform's account. A kind in the dialect's `kept` is bound to the account whose call made it, as the
 * items of such an object are. Every customer could name one of the other kinds, so a request that names one is refused unless the operator
 * lists the kind in `sharedObjects` of the policy `model-request`.
 */
export const SHARED_OBJECTS = [
  'file_id',
  'thread',
  'container',
  'previous_response_id',
  'conversation',
  'prompt',
  'item',
  'vector_store',
  'audio',
  'skill',
] as const;

export type SharedObject = (typeof SHARED_OBJECTS)[number];

/** A kind of object that answers make. Its ids belong to the account whose call made them. */
export interface KeptRule {
  /** For how many days the vendor keeps one. */
  readonly days: number;
  /** The path of the id in an unstreamed answer. */
  readonly answer: readonly string[];
  /** The path of the id in each event of a stream that has one, by the event's name. */
  readonly events: EventPaths;
  /** The items of such an object, which calls may name one by one. They belong to the same account. */
  readonly items?: ItemsRule;
}

/** The items that the vendor keeps with an object. */
export interface ItemsRule {
  readonly kind: SharedObject;
  /** The path of the list of items in an unstreamed answer. */
  readonly answer: readonly string[];
  /** The path of an item in each event of a stream that has one, by the event's name. */
  readonly events: EventPaths;
  /** Types that hold only what the model wrote: the answer's output tokens bound all its items together. */
  readonly written: readonly string[];
}

export type EventPaths = Readonly<Record<string, readonly string[]>>;

/** What the value of a member means for objects that the vendor keeps. */
export interface Keeping {
  /** The objects that it names, in any order; without `id` where the kind is never bound to an account. */
  readonly names: readonly { readonly kind: SharedObject; readonly id?: string }[];
  /** The kinds that the answer may make. */
  readonly makes: readonly SharedObject[];
  /** Whether the vendor reads more than the objects named. */
  readonly isOutside: boolean;
}

interface Rule {
  readonly class: MemberClass;
  /** Why it has this class, for operators. */
  readonly why: string;
}

/** One top-level member of a request. */
export interface MemberRule extends Rule {
  /** Says whether this value is free whatever the class is; absent: only `null` is. */
  isFree?(value: unknown): boolean;
  /** The values that `isFree` accepts beside `null`, in words. */
  readonly freeValues?: string;
  /** The kind of kept object that the member names. */
  readonly names?: SharedObject;
  /** Returns what this value names and makes; undefined for a form that the table does not know. Absent: every value names one. */
  keeps?(value: unknown): Keeping | undefined;
  /** A `priced` member whose value is the name of a tier, speed or region: models may have a price for it. */
  readonly asks?: keyof Variant;
  /** How many further times the vendor may run the model, each with an input of up to the context window. */
  readonly furtherPasses?: number;
  /** A `priced` member that costs one piece of this meter for each call, which answers do not report. */
  readonly meter?: Meter;
  /** How many further answers of up to the model's `maxOutput` the vendor may write. */
  readonly furtherAnswers?: number;
}

/** What one content part holds. */
export interface PartRule extends Rule {
  /** What is counted for the part instead of its text; an operator may declare bounds for the last two. */
  readonly counts?: 'image' | 'imageByUrl' | 'document';
  readonly names?: SharedObject;
  /** How many further times the vendor may run the model, and write further answers of up to `maxOutput`. */
  readonly furtherPasses?: number;
  readonly furtherAnswers?: number;
}

/** One type of content part, or one for each way in which the part brings its content. */
export type PartType = PartRule | { readonly sources: Readonly<Record<string, PartRule>> };

/** One type of tool; a `*` stands for the version at its end. */
export interface ToolRule extends Rule {
  /** How many times `toolOverheadTokens` the vendor's own definition of the tool takes, at most. */
  readonly overheads: number;
  readonly furtherPasses?: number;
  /** The meter that counts what the vendor charges for it beside tokens. Models must have a price for each piece. */
  readonly meter?: Meter;
  /**
   * How often one call may use a tool that takes a limit (`max_uses`, or the dialect's `toolLimit`), where neither the call nor the model
   * says. Each use may run the model once more, unless `furtherPasses` says how often it may. Absent: the tool takes no limit, and at
   * most one piece is charged for a call.
   */
  readonly uses?: number;
  /** The kind of object that it makes. */
  readonly makes?: SharedObject;
  /** The kind of kept object that it names. */
  readonly names?: SharedObject;
}

/** One type of tool, or one for each form of it that costs something else. */
export type ToolType = ToolRule | FormedTool;

export interface FormedTool {
  readonly forms: Readonly<Record<string, ToolRule>>;
  /** Returns the form of a tool, or undefined for one that the table does not have. */
  formOf(tool: Readonly<Record<string, unknown>>): string | undefined;
}

/** What one protocol's requests are made of. */
export interface Dialect {
  readonly members: Readonly<Record<string, MemberRule>>;
  readonly parts: Readonly<Record<string, PartType>>;
  readonly tools: Readonly<Record<string, ToolType>>;
  /** The top-level member that limits how often all tools together are used that run at the vendor. Absent: each has its own `max_uses`. */
  readonly toolLimit?: string;
  /** The kind of object that every answer makes unless a member is `false`. */
  readonly keepsAnswers?: { readonly kind: SharedObject; readonly unless: string };
  /** The kinds of objects that answers of this dialect make. */
  readonly kept: Readonly<Partial<Record<SharedObject, KeptRule>>>;
}

/** How often a vendor runs the model again in one call, because of tools that it runs itself. Anthropic pauses the turn after ten runs. */
export const PASSES_OF_A_LOOP = 9;

export const free = (why: string): MemberRule => ({ class: 'free', why });
export const bounded = (why: string): MemberRule => ({ class: 'bounded', why });

/** A member that changes the price, but for these values. */
export function pricedExcept(values: readonly string[], why: string, asks?: keyof Variant): MemberRule {
  return {
    class: 'priced',
    why,
    ...(asks !== undefined && { asks }),
    isFree: (value) => typeof value === 'string' && values.includes(value),
    ...(values.length > 0 && { freeValues: values.join(', ') }),
  };
}

export function kept(names: SharedObject, why: string): MemberRule {
  return { class: 'outside', why, names };
}

export const BACKGROUND: MemberRule = {
  class: 'refused',
  why: 'billed after the call has ended',
  isFree: (value) => value === false,
  freeValues: 'false',
};

/** Content parts that several dialects have. */
export const TEXT: PartRule = { class: 'bounded', why: 'its text is in the body' };
export const ECHO: PartRule = { class: 'bounded', why: 'the client sends back what an answer held' };
export const FILE: PartRule = { class: 'outside', why: 'a file at the vendor', counts: 'document', names: 'file_id' };
