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
 * Resources that a vendor keeps under the platform's account. The gateway binds a resource of a kind in the table's `kept`, and its items,
 * to the account whose call created it. Any customer could name a resource of the other kinds. The gateway refuses a request that names one
 * unless the operator lists the kind in `sharedObjects` of the policy `model-request`.
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

/** A kind of vendor resource that answers create. Its ids belong to the account whose call created them. */
export interface KeptRule {
  /** How many days the vendor keeps such a resource. */
  readonly days: number;
  /** The path of the resource's id in an unstreamed answer. */
  readonly answer: readonly string[];
  /** The path of the resource's id in a stream's events, by the event's name. Other events do not contain it. */
  readonly events: EventPaths;
  /** The resource's items, which calls may name individually. They belong to the same account. */
  readonly items?: ItemsRule;
}

/** Where answers list the items that the vendor keeps with a resource. */
export interface ItemsRule {
  readonly kind: SharedObject;
  /** The path of the list of items in an unstreamed answer. */
  readonly answer: readonly string[];
  /** The path of an item in a stream's events, by the event's name. Other events do not contain one. */
  readonly events: EventPaths;
}

export type EventPaths = Readonly<Record<string, readonly string[]>>;

/** The vendor resources that a member's value names, and those that it makes the answer create. */
export interface Keeping {
  /** The resources that the value names, in any order; without `id` if the gateway never binds the kind to an account. */
  readonly names: readonly { readonly kind: SharedObject; readonly id?: string }[];
  /** The kinds of vendor resources that the answer may create. */
  readonly makes: readonly SharedObject[];
  /** Whether the vendor also reads something outside the body other than the named resources. */
  readonly isOutside: boolean;
}

/** How a part of a request affects the cost. */
export interface CostRule {
  readonly class: MemberClass;
  /** Why the part has this class, for operators. */
  readonly why: string;
}

/** What the gateway does with a part of a request when it translates the request to another protocol. */
export interface TranslationRule {
  /** `carried`: the upstream gets the part. If the upstream's protocol cannot express it, that protocol's writer refuses or drops it. */
  readonly action: 'carried' | 'dropped' | 'refused';
  readonly why: string;
}

/** How a row's member, part or tool is translated. Without `translation`, as in protocols that are not translated, it is refused. */
export interface TranslatedRow {
  readonly translation?: TranslationRule;
  /** The conversation features that it expresses. If several rows express one feature, errors name the first. */
  readonly features?: readonly Feature[];
  /** Values that change nothing: they cost nothing, and translation drops them instead of refusing them. */
  readonly harmless?: readonly unknown[];
}

/** The type of value that a member requires. A value that may be long is checked only by its first character. */
export type Kind = { readonly expected: string } & ({ readonly begins: string } | { accepts(value: unknown): boolean });

/** The prices that a `priced` member or content part needs; without them its cost is unknown. */
export interface Needs {
  /** The meters of its tokens that need a price. */
  readonly meters?: readonly TokenMeter[];
  /** Further models of the same upstream that the vendor may run, and that need a price. */
  readonly models?: readonly NeededModel[];
}

export interface NeededModel {
  readonly model: string;
  /** The model's own limit of output tokens; undefined: the limit of the call. */
  readonly maxOutputTokens: number | undefined;
}

export type Addition = 'tools' | 'prediction' | 'hour';

/** One top-level member of a request. */
export interface MemberRow extends CostRule, TranslatedRow {
  /** The type of its value; absent: the gateway does not check the value. */
  readonly is?: Kind;
  readonly isRequired?: boolean;
  /** Members that a request may have instead of this required one. */
  readonly replacedBy?: readonly string[];
  /** Returns whether this value is free, whatever the member's class. `null` and `harmless` values always are. */
  isFree?(value: unknown): boolean;
  /** A description of the free values that `harmless` does not list. */
  readonly freeValues?: string;
  /**
   * What the member adds to the hold beside its text. `tools`: `toolOverheadTokens` once. `prediction`: its own length to each answer.
   * `hour`: the price of an hour of caching.
   */
  readonly adds?: Addition;
  /** The kind of vendor resource that the member names. */
  readonly names?: SharedObject;
  /** Returns what this value names and creates; undefined for a form that the table does not know. Absent: every value names a resource. */
  keeps?(value: unknown): Keeping | undefined;
  /** What the value of a `priced` member selects: a tier, speed or region, for which models may have separate prices. */
  readonly asks?: keyof Variant;
  /** How many further times the vendor may run the model, each with an input of up to the context window. */
  readonly furtherPasses?: number;
  /** The meter of a `priced` member that costs one piece for each call. Answers do not report that piece. */
  readonly meter?: Meter;
  /** Returns the prices that this value of a `priced` member needs; undefined if no price covers it. Absent: no price covers any value. */
  needs?(value: unknown): Needs | undefined;
  /** How many further answers of up to the model's `maxOutput` the vendor may write. */
  readonly furtherAnswers?: number;
}

/** How one type of content part affects the cost. */
export interface PartRule extends CostRule {
  /** What the hold counts for the part instead of its text. An operator may set bounds for `imageByUrl` and `document`. */
  readonly counts?: 'image' | 'imageByUrl' | 'document';
  readonly names?: SharedObject;
  /** The prices that a `priced` part needs. The vendor unpacks the part, so it counts as `outside` too. */
  readonly needs?: Needs;
  /** How many further times the vendor may run the model. The next member: how many further answers of up to `maxOutput` it may write. */
  readonly furtherPasses?: number;
  readonly furtherAnswers?: number;
}

/** A type of content part or item: one rule, or one for each source of the part's content, such as data, URL or file. */
export type PartRow = TranslatedRow & {
  /** Whether such an item contains only the model's own output. The answer's output tokens then bound all such items together. */
  readonly isWritten?: true;
} & (PartRule | { readonly sources: Readonly<Record<string, PartRule>> });

/** The rule of a type of tool; a `*` in the type stands for the version at its end. */
export interface ToolRule extends CostRule {
  /** How many times `toolOverheadTokens` the vendor's own definition of the tool needs, at most. */
  readonly overheads: number;
  readonly furtherPasses?: number;
  /** The meter of what the vendor charges for the tool beside tokens. A model may have a price for each piece. */
  readonly meter?: Meter;
  /**
   * Whether a call can limit the uses of the tool (by `max_uses`, or by the table's `toolLimit`). Each use may run the model once more,
   * unless `furtherPasses` gives another number. Absent: a call is charged for one piece at most.
   */
  readonly isLimited?: boolean;
  /** The kind of vendor resource that the tool creates. */
  readonly makes?: SharedObject;
  /** The kind of vendor resource that the tool names. */
  readonly names?: SharedObject;
}

/** A type of tool: one rule, or one for each form whose cost differs. */
export type ToolRow = TranslatedRow & (ToolRule | FormedTool);

export interface FormedTool {
  readonly forms: Readonly<Record<string, ToolRule>>;
  /** Returns the name of a tool's form, or undefined for a form that the table does not have. */
  formOf(tool: Readonly<Record<string, unknown>>): string | undefined;
}

/**
 * All that the gateway knows of one protocol's requests, in one row for each member, item, content part and tool. The request reader, the
 * checks, the hold and `tollgate explain` use this table.
 */
export interface RequestTable {
  /** The top-level members of a request. */
  readonly members: Readonly<Record<string, MemberRow>>;
  /** The roles that a message may have. */
  readonly roles: readonly string[];
  /** Whether `null` counts as absent for an optional member. */
  readonly nullIsAbsent: boolean;
  /** The items of the conversation, in a protocol whose items need not be messages and may themselves be content parts. */
  readonly items?: Readonly<Record<string, PartRow>>;
  readonly parts: Readonly<Record<string, PartRow>>;
  readonly tools: Readonly<Record<string, ToolRow>>;
  /** How members inside of members, items, parts and tools are translated, by their path. */
  readonly nested: Readonly<Record<string, Readonly<Record<string, TranslatedRow>>>>;
  /** The top-level member that limits all uses of vendor tools together. Absent: each tool has a separate `max_uses`. */
  readonly toolLimit?: string;
  /** The kind of vendor resource that every answer creates, unless the member named in `unless` is `false`. */
  readonly keepsAnswers?: { readonly kind: SharedObject; readonly unless: string };
  /** The kinds of vendor resources that answers of this protocol create. */
  readonly kept: Readonly<Partial<Record<SharedObject, KeptRule>>>;
}
