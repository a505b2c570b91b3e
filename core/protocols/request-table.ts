import type { Feature } from '../catalog/conversation';
import type { Variant } from '../catalog/price';
import type { Meter, TokenMeter } from '../catalog/usage';

/**
 * The effect of a part of a request on its cost:
 * `free`: no effect.
 * `bounded`: the vendor reads it as it is in the body.
 * `outside`: it makes the vendor read something that is not in the body, or that the vendor unpacks.
 * `priced`: it costs more than tokens at the model's price.
 * `refused`: its cost cannot be billed.
 */
export type MemberClass = 'free' | 'bounded' | 'outside' | 'priced' | 'refused';

/**
 * Objects that a vendor keeps for the platform's account. The gateway binds an object of a kind in the table's `kept`, and its
 * items, to the account whose call made it. Any customer could name an object of the other kinds. A request that names one is
 * refused unless the operator lists the kind in `sharedObjects` of the policy `model-request`.
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

/** A kind of object that answers create. Its ids belong to the account whose call created them. */
export interface KeptRule {
  /** How many days the vendor keeps such an object. */
  readonly days: number;
  /** The path of the id in an unstreamed answer. */
  readonly answer: readonly string[];
  /** The path of the id in each event of a stream that has one, by the event's name. */
  readonly events: EventPaths;
  /** The items of such an object, which calls may name individually. They belong to the same account. */
  readonly items?: ItemsRule;
}

/** The items that the vendor keeps with an object. */
export interface ItemsRule {
  readonly kind: SharedObject;
  /** The path of the list of items in an unstreamed answer. */
  readonly answer: readonly string[];
  /** The path of an item in each event of a stream that has one, by the event's name. */
  readonly events: EventPaths;
}

export type EventPaths = Readonly<Record<string, readonly string[]>>;

/** The objects, kept by the vendor, that a member's value refers to. */
export interface Keeping {
  /** The objects that the value names, in any order; without `id` if the kind is never bound to an account. */
  readonly names: readonly { readonly kind: SharedObject; readonly id?: string }[];
  /** The kinds of objects that the answer may create. */
  readonly makes: readonly SharedObject[];
  /** Whether the vendor reads more than the objects named. */
  readonly isOutside: boolean;
}

/** What a part of a request means for the cost. */
export interface CostRule {
  readonly class: MemberClass;
  /** Why it has this class, for operators. */
  readonly why: string;
}

/** What becomes of a part of a request that is translated to another protocol. */
export interface TranslationRule {
  /** `carried`: the upstream gets it, unless its protocol has no place for it; then the protocol's writer refuses or drops it. */
  readonly action: 'carried' | 'dropped' | 'refused';
  readonly why: string;
}

/** A row says how something is translated. Without a rule, as in protocols that are not translated, it is refused. */
export interface TranslatedRow {
  readonly translation?: TranslationRule;
  /** The features of a conversation that it expresses. Of several rows for one feature the first names it in errors. */
  readonly features?: readonly Feature[];
  /** Values that change nothing: they cost nothing, and translation drops them instead of refusing them. */
  readonly harmless?: readonly unknown[];
}

/** What a value must be. A value that may be long is known by its first character. */
export type Kind = { readonly expected: string } & ({ readonly begins: string } | { accepts(value: unknown): boolean });

/** What must have a price so that a `priced` member or content part has one. */
export interface Needs {
  /** The meters of its tokens. */
  readonly meters?: readonly TokenMeter[];
  /** Further models of the same upstream that may run. */
  readonly models?: readonly NeededModel[];
}

export interface NeededModel {
  readonly model: string;
  /** Its own limit of output tokens; undefined: that of the call. */
  readonly maxOutputTokens: number | undefined;
}

export type Addition = 'tools' | 'prediction' | 'hour';

/** One top-level member of a request. */
export interface MemberRow extends CostRule, TranslatedRow {
  /** What its value must be; absent: the gateway does not check it. */
  readonly is?: Kind;
  readonly isRequired?: boolean;
  /** Members that may stand instead of a required one. */
  readonly replacedBy?: readonly string[];
  /** Returns whether this value is free, whatever the class is. `null` and harmless values are. */
  isFree?(value: unknown): boolean;
  /** The free values that are no list of harmless ones, in words. */
  readonly freeValues?: string;
  /**
   * What it adds to the hold beside its text: definitions of tools (once `toolOverheadTokens`), its own length to each answer, or
   * the price of a cache for an hour.
   */
  readonly adds?: Addition;
  /** The kind of kept object that the member names. */
  readonly names?: SharedObject;
  /** Returns what this value names and creates; undefined for a form that the table does not know. Absent: every value names an object. */
  keeps?(value: unknown): Keeping | undefined;
  /** The variant that the value of a `priced` member asks for: a tier, speed or region, for which models may have a price. */
  readonly asks?: keyof Variant;
  /** How many further times the vendor may run the model, each with an input of up to the context window. */
  readonly furtherPasses?: number;
  /** The meter of a `priced` member that costs one piece for each call, which answers do not report. */
  readonly meter?: Meter;
  /** Returns what this value of a `priced` member needs a price for; undefined if no price covers it. Absent: none covers any value. */
  needs?(value: unknown): Needs | undefined;
  /** How many further answers of up to the model's `maxOutput` the vendor may write. */
  readonly furtherAnswers?: number;
}

/** The cost of one type of content part. */
export interface PartRule extends CostRule {
  /** What the hold counts for the part instead of its text. An operator may declare bounds for `imageByUrl` and `document`. */
  readonly counts?: 'image' | 'imageByUrl' | 'document';
  readonly names?: SharedObject;
  /** What a `priced` part needs a price for. The vendor unpacks it, so it counts as `outside` too. */
  readonly needs?: Needs;
  /** How many further times the vendor may run the model, and write further answers of up to `maxOutput`. */
  readonly furtherPasses?: number;
  readonly furtherAnswers?: number;
}

/** A type of content part or item: one rule, or one for each way in which the part brings its content. */
export type PartRow = TranslatedRow & {
  /** Whether such an item holds only the model's own output, so that the answer's output tokens bound all its items together. */
  readonly isWritten?: true;
} & (PartRule | { readonly sources: Readonly<Record<string, PartRule>> });

/** The rule of a type of tool; a `*` in the type stands for the version at its end. */
export interface ToolRule extends CostRule {
  /** How many times `toolOverheadTokens` the vendor's own definition of the tool takes, at most. */
  readonly overheads: number;
  readonly furtherPasses?: number;
  /** The meter that counts what the vendor charges for it beside tokens. A model may have a price for each piece. */
  readonly meter?: Meter;
  /**
   * Whether a call can limit how often it uses the tool (`max_uses`, or the table's `toolLimit`). Each use may run the model
   * once more, unless `furtherPasses` gives another number. Absent: a call is charged for one piece at most.
   */
  readonly isLimited?: boolean;
  /** The kind of object that the tool creates. */
  readonly makes?: SharedObject;
  /** The kind of kept object that the tool names. */
  readonly names?: SharedObject;
}

/** A type of tool: one rule, or one for each form with other costs. */
export type ToolRow = TranslatedRow & (ToolRule | FormedTool);

export interface FormedTool {
  readonly forms: Readonly<Record<string, ToolRule>>;
  /** Returns the form of a tool, or undefined for one that the table does not have. */
  formOf(tool: Readonly<Record<string, unknown>>): string | undefined;
}

/**
 * All that the gateway knows of one protocol's requests, one row for each member, item, content part and tool. The reader, the
 * checks, the hold and `tollgate explain` follow from it.
 */
export interface RequestTable {
  /** The top-level members. */
  readonly members: Readonly<Record<string, MemberRow>>;
  /** The roles that a message may have. */
  readonly roles: readonly string[];
  /** Whether `null` means that an optional member is absent. */
  readonly nullIsAbsent: boolean;
  /** The items of the conversation, where these are content parts themselves and need not be messages. */
  readonly items?: Readonly<Record<string, PartRow>>;
  readonly parts: Readonly<Record<string, PartRow>>;
  readonly tools: Readonly<Record<string, ToolRow>>;
  /** How members of members, items, parts and tools are translated, by their place. */
  readonly nested: Readonly<Record<string, Readonly<Record<string, TranslatedRow>>>>;
  /** The top-level member that limits the uses of all vendor tools together. Absent: each tool has its own `max_uses`. */
  readonly toolLimit?: string;
  /** The kind of object that every answer creates, unless a member is `false`. */
  readonly keepsAnswers?: { readonly kind: SharedObject; readonly unless: string };
  /** The kinds of objects that answers of this protocol create. */
  readonly kept: Readonly<Partial<Record<SharedObject, KeptRule>>>;
}
