import type { ImageDetail, ModelEntry } from '../catalog/catalog';
import type { CacheWrites, Variant } from '../catalog/price';
import type { Meter } from '../catalog/usage';
import { PASSES_OF_A_LOOP } from './request-rows';
import type { Needs } from './request-table';

/** What a vendor reads for a call, and writes beside the answer, as far as the request shows. The hold is computed from it. */
export interface CostFactors {
  /** The most tokens of the text in the body: its bytes, without base64 and with one for each token that it names by number. */
  readonly textTokens: number;
  /** Returns how many more there are if the tokenizer normalises the text by NFKC. */
  readonly normalizing: () => number;
  /** How many images have their data in the body, by the detail that they ask for. */
  readonly images: ReadonlyMap<ImageDetail, number>;
  readonly imagesByUrl: number;
  /** How many documents the vendor fetches or unpacks. */
  readonly documents: number;
  /** The tokens of conversations, containers and items that the vendor keeps, as it reported them at their creation. */
  readonly keptTokens: number;
  /** Whether the vendor reads something else that is not in the body, so that only the context window bounds it. */
  readonly isUnbounded: boolean;
  /** Unknown members that the hold counts as outside. An upstream may declare them free. */
  readonly heldMembers: readonly string[];
  /** Unknown members with a switch or a short word, which it counts as outside unless the upstream is official. */
  readonly smallMembers: readonly string[];
  /** Everything in the request that the tables do not have. */
  readonly unknownMembers: readonly string[];
  /** How many times the model reads its `toolOverheadTokens`. */
  readonly toolOverheads: number;
  /** Whether there are tools, in any place of the request. */
  readonly hasTools: boolean;
  /** How many further times the vendor may run the model, each with an input of up to the context window. */
  readonly furtherPasses: number;
  /** How many further answers of up to the model's `maxOutput` the vendor may write. */
  readonly furtherAnswers: number;
  /** The most tokens of the predicted output: its bytes. The part that the answer does not use also costs as output. */
  readonly predictedTokens: number;
  /** How long the vendor may cache what it reads. */
  readonly cacheWrites: CacheWrites;
  /** The tier, speed and region that the request asks for, if they have a price of their own. */
  readonly asked?: Variant | undefined;
  /** The tools of the request that run at the vendor; undefined if there are none. */
  readonly toolUses?: readonly ToolUse[] | undefined;
  /** What else the vendor charges apart, such as speech and other models; undefined if there is nothing. */
  readonly extras?: readonly Extra[] | undefined;
}

/** Something that the vendor charges apart and does not count in pieces. Without `meters` and `models` no price covers it. */
export interface Extra extends Needs {
  /** What it is, in words of our tables: logs name it. */
  readonly name: string;
  /** The place in the request, for errors. */
  readonly param: string;
}

/** Something that runs at the vendor: it is charged by the piece, or runs the model as often as its limit allows. */
export interface ToolUse {
  /** The meter that counts it; undefined for a tool that costs nothing but tokens. */
  readonly meter: Meter | undefined;
  /** The most pieces of one call; undefined if the model determines it. */
  readonly pieces: number | undefined;
  /** How many further times the vendor may run the model for it, beside the `furtherPasses` of the reading. */
  readonly furtherPasses?: number;
  /** The limit of its uses; undefined for a tool that takes no limit. */
  readonly limit: ToolLimit | undefined;
  /** Whether answers report how many pieces there were; otherwise each call is charged for `pieces`. */
  readonly isReported: boolean;
  /** The place in the request, for errors. */
  readonly param: string;
}

/** The limit of uses that a tool has in the request, or that the gateway gives it. */
export interface ToolLimit {
  /** Whether each use may run the model once more; otherwise `furtherPasses` counts these runs. */
  readonly runsModel: boolean;
  /** Whether all tools of the call share the limit. */
  readonly isShared?: boolean;
  /** Where the gateway inserts a limit of uses into the tool; undefined if the call has one. */
  readonly insert: LimitPlace | undefined;
  /** Where the call's own limit is, which is lowered for a tool without a price. */
  readonly own?: LimitPlace;
}

/** Where the gateway writes a limit: over bytes `from`..`to` of the body. If `name` is set, it writes a whole member of that name. */
export interface LimitPlace {
  readonly from: number;
  readonly to: number;
  readonly name: string | undefined;
}

/** Whether a tool costs something for which a model has no price. Its pieces cost nothing; what the vendor reads for it does. */
export function isUnpriced({ meter }: Pick<ToolUse, 'meter'>, { price }: Pick<ModelEntry, 'price'>): boolean {
  return meter !== undefined && !price.pieces.has(meter);
}

/**
 * Returns how many pieces of a tool one call at a model can have. Without a price a call gets no more than the usual number,
 * because the platform pays.
 */
export function piecesOf(tool: ToolUse, model: Pick<ModelEntry, 'toolUses' | 'price'>): number {
  const { meter, pieces } = tool;
  const usual = (meter === undefined ? undefined : model.toolUses?.get(meter)) ?? 1;
  return Math.min(pieces ?? usual, isUnpriced(tool, model) ? usual : Number.POSITIVE_INFINITY);
}

/** Returns how many further times the vendor may run a model in one call. The tools share one loop, and some share a limit. */
export function furtherPassesOf(reading: CostFactors, model: Pick<ModelEntry, 'toolUses' | 'price'>): number {
  const { furtherPasses, toolUses } = reading;
  if (toolUses === undefined) return furtherPasses;
  let uses = 0;
  let shared = 0;
  let further = 0;
  for (const tool of toolUses) {
    further = Math.max(further, tool.furtherPasses ?? 0);
    if (tool.limit?.runsModel !== true) continue;
    if (tool.limit.isShared) shared = Math.max(shared, piecesOf(tool, model));
    else uses += piecesOf(tool, model);
  }
  return furtherPasses + further + shared + Math.min(uses, PASSES_OF_A_LOOP);
}

/** Whether the vendor may read something that is not in the body, beside what its tools find. */
export function pointsOutside(reading: CostFactors): boolean {
  const { imagesByUrl, documents, keptTokens, unknownMembers, isUnbounded } = reading;
  return isUnbounded || imagesByUrl + documents + keptTokens + unknownMembers.length > 0;
}

/** Whether the vendor may charge for something outside the body, or at another price than the plain one. */
export function reachesOutside(reading: Omit<CostFactors, 'cacheWrites'>): boolean {
  const { imagesByUrl, documents, keptTokens, furtherPasses, furtherAnswers, unknownMembers } = reading;
  const counted = imagesByUrl + documents + keptTokens + furtherPasses + furtherAnswers + unknownMembers.length;
  const isApart = reading.asked !== undefined || reading.toolUses !== undefined || reading.extras !== undefined;
  return reading.isUnbounded || isApart || counted > 0;
}
