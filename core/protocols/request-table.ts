import type { Feature } from '../catalog/conversation';
import type { Variant } from '../catalog/price';
import type { Meter, TokenMeter } from '../catalog/usage';

/**
 * The effect of a part of a request on its cost. `free`: no effect. `bounded`: the vendor reads it as it is in the body. `outside`: the
 * vendor reads something that is not in the body, or unpacks the part. `priced`: it costs more than tokens at the model's price. `refused`:
 * its cost cannot be billed.
 */
export type MemberClass = 'free' | 'bounded' | 'outside' | 'priced' | 'refused';

/**
 * Resources that a vendor keeps under the platform's account, by kind. The gateway binds resources of some kinds to the account whose call
 * created them, and their items, too: the kinds in the table's `kept`. Any customer could name a resource of the other kinds. The gateway
 * refuses a request that names such a resource, unless the operator lists its kind in `sharedObjects` of the policy `model-request`.
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

/** The rule for a kind of vendor resource that answers create, such as responses. Its ids belong to the account whose call created them. */
export interface KeptRule {
  /** How many days the vendor keeps a resource of this kind. */
  readonly days: number;
  /** The path of the resource's id in an unstreamed answer. */
  readonly answer: readonly string[];
  /** The path of the resource's id in events of a stream, by the name of the event. Events of other names do not contain the id. */
  readonly events: EventPaths;
  /** Where answers list the resource's items, if calls may name these items individually. The items belong to the resource's account. */
  readonly items?: ItemsRule;
}

/** Where answers list the items that the vendor keeps with a resource. */
export interface ItemsRule {
  readonly kind: SharedObject;
  /** The path of the list of the resource's items in an unstreamed answer. */
  readonly answer: readonly string[];
  /** The path of an item in events of a stream, by the name of the event. Events of other names do not contain an item. */
  readonly events: EventPaths;
}

export type EventPaths = Readonly<Record<string, readonly string[]>>;

/** The vendor resources that the value of a request member names, and the kinds that the value makes the answer create. */
export interface Keeping {
  /** The vendor resources that the value names, in any order. `id` is absent for a kind that the gateway never binds to an account. */
  readonly names: readonly { readonly kind: SharedObject; readonly id?: string }[];
  /** The kinds of vendor resources that the answer may create. */
  readonly makes: readonly SharedObject[];
  /** Whether the vendor also reads something that is neither in the body nor one of the named resources. */
  readonly isOutside: boolean;
}

/** How a part of a request affects the cost, and what happens to content for it. */
export interface CostRule {
  readonly class: MemberClass;
  /** Why the request part has its cost class, for operators. */
  readonly why: string;
  /** What the part makes the vendor do with content: keep it, fetch some from elsewhere, or pass it on. Absent: nothing of these. */
  readonly leaves?: 'keep' | 'fetch' | 'pass on';
}

/** The gateway's treatment of a request part when it translates the request to another protocol. */
export interface TranslationRule {
  /**
   * The treatment of the request part. `carried`: the upstream gets it. If the upstream's protocol cannot express it, that protocol's
   * writer refuses or drops it.
   */
  readonly action: 'carried' | 'dropped' | 'refused';
  readonly why: string;
}

/**
 * The translation of a member, content part or tool of a request. A translated request is refused if it has a part without `translation`.
 * Protocols that are not translated have no `translation`.
 */
export interface TranslatedRow {
  readonly translation?: TranslationRule;
  /** The conversation features that the request part expresses. If several rows express one feature, errors name the first row. */
  readonly features?: readonly Feature[];
  /** Values of the request part that change nothing. They cost nothing, and translation drops them instead of refusing them. */
  readonly harmless?: readonly unknown[];
}

/** The type of value that a request member requires. If a value may be long, the gateway checks only its first character. */
export type Kind = { readonly expected: string } & ({ readonly begins: string } | { accepts(value: unknown): boolean });

/** The prices that a `priced` member or content part of a request needs. Without them its cost is unknown. */
export interface Needs {
  /** The kinds of tokens (meters) that need a price of their own. */
  readonly meters?: readonly TokenMeter[];
  /** Further models of the same upstream that the vendor may run for the request. Each needs a price. */
  readonly models?: readonly NeededModel[];
}

export interface NeededModel {
  readonly model: string;
  /** The output limit of a further model, in tokens; undefined if the call's own limit applies to it. */
  readonly maxOutputTokens: number | undefined;
}

export type Addition = 'tools' | 'prediction' | 'hour';

/** One top-level member of a request. */
export interface MemberRow extends CostRule, TranslatedRow {
  /** The type that the member's value must have; if absent, the gateway does not check the value. */
  readonly is?: Kind;
  readonly isRequired?: boolean;
  /** The alternatives to this required member. A request without the member must have one of them. */
  readonly replacedBy?: readonly string[];
  /** Returns whether a value of the member costs nothing, whatever the member's `class`. `null` and `harmless` values never cost anything. */
  isFree?(value: unknown): boolean;
  /** A description, for operators, of the values that cost nothing and that `harmless` does not list. */
  readonly freeValues?: string;
  /**
   * What the member adds to the hold beside the cost of its text. `tools`: `toolOverheadTokens` once. `prediction`: the length of the
   * member's text, for each answer. `hour`: the price of an hour of caching.
   */
  readonly adds?: Addition;
  /** The kind of vendor resource that the member's value names. */
  readonly names?: SharedObject;
  /** Values of the member with which the vendor does not do what `leaves` says, beside null and the `harmless` ones. */
  readonly staysWith?: readonly unknown[];
  /**
   * Returns the vendor resources that a value names and creates; undefined for a form of value that the table does not know. Without this
   * function, every value names a resource.
   */
  keeps?(value: unknown): Keeping | undefined;
  /** What the value of a `priced` member selects: a tier, speed or region. Models may have separate prices for these. */
  readonly asks?: keyof Variant;
  /** How many times more than once the vendor may run the model, each time with an input of up to the context window. */
  readonly furtherPasses?: number;
  /** The meter of a `priced` member that costs a fixed piece (one unit of the meter) per call. Answers do not report that piece. */
  readonly meter?: Meter;
  /** Returns the prices that a value of a `priced` member needs; undefined if no price covers it. Without this function, no price covers any value. */
  needs?(value: unknown): Needs | undefined;
  /** How many more answers, beside the one that the client gets, the vendor may write. Each has up to the model's `maxOutput` tokens. */
  readonly furtherAnswers?: number;
}

/** How one type of content part affects the cost. */
export interface PartRule extends CostRule {
  /** What the hold counts for the content part instead of its text. An operator may set bounds for `imageByUrl` and `document`. */
  readonly counts?: 'image' | 'imageByUrl' | 'document';
  readonly names?: SharedObject;
  /** The prices that a `priced` content part needs. Such a part is treated as `outside`, too, because the vendor unpacks it. */
  readonly needs?: Needs;
  /** How many times more than once the vendor may run the model. `furtherAnswers` is how many more answers of up to `maxOutput` the vendor may write. */
  readonly furtherPasses?: number;
  readonly furtherAnswers?: number;
}

/** A type of content part or conversation item. It has one cost rule, or one for each source of its content, such as data, URL or file. */
export type PartRow = TranslatedRow & {
  /** Whether items of this type contain only the model's own output. The output tokens of the earlier answer then bound all its items together. */
  readonly isWritten?: true;
} & (PartRule | { readonly sources: Readonly<Record<string, PartRule>> });

/** The cost rule of a type of tool. A `*` at the end of the type's name stands for a version. */
export interface ToolRule extends CostRule {
  /** How many times, at most, the hold counts `toolOverheadTokens` (the length of a tool prompt) for the vendor's own definition of the tool. */
  readonly overheads: number;
  readonly furtherPasses?: number;
  /** The meter that counts what the vendor charges for the tool beside tokens. A model may have a price for each piece (unit of the meter). */
  readonly meter?: Meter;
  /**
   * Whether a call can limit the uses of the tool (by `max_uses`, or by the table's `toolLimit`). Each use may run the model once more,
   * unless `furtherPasses` gives another number. If absent, a call is charged for one use at most.
   */
  readonly isLimited?: boolean;
  /** The kind of vendor resource that a call with the tool creates. */
  readonly makes?: SharedObject;
  /** The kind of vendor resource that a call with the tool names. */
  readonly names?: SharedObject;
}

/** A type of tool in a request table. It has one cost rule, or one for each of its forms if the cost differs between forms. */
export type ToolRow = TranslatedRow & (ToolRule | FormedTool);

export interface FormedTool {
  readonly forms: Readonly<Record<string, ToolRule>>;
  /** Returns the name of a tool's form, or undefined for a form that the table does not have. */
  formOf(tool: Readonly<Record<string, unknown>>): string | undefined;
}

/**
 * The gateway's knowledge of one protocol's requests, with one row for each member, item, content part and tool. The request reader, the
 * checks, the hold and `tollgate explain` use this table.
 */
export interface RequestTable {
  /** The top-level members of a request. */
  readonly members: Readonly<Record<string, MemberRow>>;
  /** The roles that a message may have. */
  readonly roles: readonly string[];
  /** Whether `null` counts as absent for an optional member. */
  readonly nullIsAbsent: boolean;
  /** The types of conversation items. Only protocols in which an item need not be a message have this member. Such items may themselves be content parts. */
  readonly items?: Readonly<Record<string, PartRow>>;
  readonly parts: Readonly<Record<string, PartRow>>;
  readonly tools: Readonly<Record<string, ToolRow>>;
  /** The translation of members inside members, items, parts and tools of a request, by their path. */
  readonly nested: Readonly<Record<string, Readonly<Record<string, TranslatedRow>>>>;
  /** The top-level member that limits all uses of vendor tools together. If absent, each tool has a separate `max_uses`. */
  readonly toolLimit?: string;
  /** The kind of vendor resource that every answer creates, unless the request member named in `unless` is `false`. */
  readonly keepsAnswers?: { readonly kind: SharedObject; readonly unless: string };
  /** The kinds of vendor resources that answers of this protocol create. */
  readonly kept: Readonly<Partial<Record<SharedObject, KeptRule>>>;
}
