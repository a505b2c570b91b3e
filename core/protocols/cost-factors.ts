import type { ImageDetail, ModelEntry } from '../catalog/catalog';
import type { CacheWrites, Variant } from '../catalog/price';
import type { Meter } from '../catalog/usage';
import { PASSES_OF_A_LOOP } from './request-rows';
import type { Needs } from './request-table';

/** What a vendor may read for a call outside the body, and generate beside the answer, as far as the request shows. The gateway computes the hold from it. */
export interface CostFactors {
  /** The most tokens of the body's text: its bytes without base64, plus one for each token that the body names by number. */
  readonly textTokens: number;
  /** Returns how many more tokens the body's text may have if the model's tokenizer normalizes the text by NFKC. */
  readonly normalizing: () => number;
  /** How many images have their data in the body, by the `detail` that the client requests. */
  readonly images: ReadonlyMap<ImageDetail, number>;
  readonly imagesByUrl: number;
  /** How many documents the vendor fetches or unpacks. */
  readonly documents: number;
  /** The tokens of the conversations, containers and items that the call names. The vendor keeps these and reported their tokens when it created each. */
  readonly keptTokens: number;
  /** Whether the vendor reads anything else outside the body. Then only the model's context window bounds its input. */
  readonly isUnbounded: boolean;
  /**
   * Unknown members of the request that may add content from outside the body, so the hold covers a context window. The `freeMembers` of an
   * upstream exempt members.
   */
  readonly heldMembers: readonly string[];
  /**
   * Unknown members of the request whose value is a switch or a short word. The hold covers content from outside the body unless the
   * upstream's tier is `official`.
   */
  readonly smallMembers: readonly string[];
  /** All members, items and types in the request that the gateway's request tables do not list. */
  readonly unknownMembers: readonly string[];
  /** How many times the vendor adds a fixed prompt for tools to the input; the model's `toolOverheadTokens` is its length. */
  readonly toolOverheads: number;
  /** Whether there are tools anywhere in the request. */
  readonly hasTools: boolean;
  /** How many times more than once the vendor may run the model, each time with an input of up to the context window. */
  readonly furtherPasses: number;
  /** How many more answers, beside the one that the client gets, the vendor may write. Each has up to the model's `maxOutput` tokens. */
  readonly furtherAnswers: number;
  /** The most tokens of the predicted output (text that the client expects in the answer): its bytes. The vendor also charges the unused part as output. */
  readonly predictedTokens: number;
  /** For how long the vendor may cache the input, which decides the price of writing its cache. */
  readonly cacheWrites: CacheWrites;
  /** The tier, speed and region that the request selects, where they may have separate prices. */
  readonly asked?: Variant | undefined;
  /** The tools of the request that run at the vendor; undefined if there are none. */
  readonly toolUses?: readonly ToolUse[] | undefined;
  /** Other things that the vendor charges separately, such as speech and further models; undefined if there are none. */
  readonly extras?: readonly Extra[] | undefined;
}

/** Something that the vendor charges separately and does not count in pieces. Without `meters` and `models`, no price in the configuration covers it. */
export interface Extra extends Needs {
  /** The name of the separately charged feature, as the request tables spell it. Log lines contain the name. */
  readonly name: string;
  /** The path of the request's member that causes the separate charge, for errors. */
  readonly param: string;
}

/** A tool that runs at the vendor: the vendor charges it by the piece, or runs the model as often as the tool's limit allows. */
export interface ToolUse {
  /** The meter that counts the uses of the tool that the vendor charges (its pieces); undefined for a tool that costs only tokens. */
  readonly meter: Meter | undefined;
  /** The most charged uses (pieces) of the tool in one call; undefined if the model decides. */
  readonly pieces: number | undefined;
  /** How many further times the vendor may run the model for this tool. These runs are added to the `furtherPasses` of CostFactors. */
  readonly furtherPasses?: number;
  /** The limit of the tool's uses in one call; undefined for a tool that accepts no limit. */
  readonly limit: ToolLimit | undefined;
  /** Whether answers report the number of charged uses (pieces) of the tool; otherwise each call is charged for `pieces`. */
  readonly isReported: boolean;
  /** The tool's path in the request, for errors. */
  readonly param: string;
}

/** The limit of a tool's uses: the client's own in the request, or one that the gateway inserts. */
export interface ToolLimit {
  /** Whether each use of the tool may run the model once more. If false, the tool's `furtherPasses` is the number of further runs. */
  readonly runsModel: boolean;
  /** Whether all tools of the call share this limit of uses. */
  readonly isShared?: boolean;
  /** Where the gateway inserts a limit of uses; undefined if the client has set one. */
  readonly insert: LimitPlace | undefined;
  /** Where the client's own limit of tool uses is in the body. If the model has no price for these uses, the gateway lowers the limit. */
  readonly own?: LimitPlace;
}

/** Where the gateway writes a limit of tool uses: it replaces bytes `from`..`to` of the body. If `name` is set, it writes a whole member of that name. */
export interface LimitPlace {
  readonly from: number;
  readonly to: number;
  readonly name: string | undefined;
}

/**
 * Returns whether a tool has a meter for which a model has no price. The client then pays nothing for the tool's uses, but pays for the
 * tokens that the vendor reads for them.
 */
export function isUnpriced({ meter }: Pick<ToolUse, 'meter'>, { price }: Pick<ModelEntry, 'price'>): boolean {
  return meter !== undefined && !price.pieces.has(meter);
}

/**
 * Returns how many charged uses of a tool one call to a model may have. A tool without a price gets at most the default number, because the
 * platform pays for its uses.
 */
export function piecesOf(tool: ToolUse, model: Pick<ModelEntry, 'toolUses' | 'price'>): number {
  const { meter, pieces } = tool;
  const usual = (meter === undefined ? undefined : model.toolUses?.get(meter)) ?? 1;
  return Math.min(pieces ?? usual, isUnpriced(tool, model) ? usual : Number.POSITIVE_INFINITY);
}

/** Returns how many times more than once the vendor may run a model in one call. All tools share one loop of runs, and some share one limit. */
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

/** Returns whether the vendor may read something that is not in the body, not counting results of its tools. */
export function pointsOutside(reading: CostFactors): boolean {
  const { imagesByUrl, documents, keptTokens, unknownMembers, isUnbounded } = reading;
  return isUnbounded || imagesByUrl + documents + keptTokens + unknownMembers.length > 0;
}

/** Returns whether the vendor may charge for something outside the body, or at a price other than the model's plain price. */
export function reachesOutside(reading: Omit<CostFactors, 'cacheWrites'>): boolean {
  const { imagesByUrl, documents, keptTokens, furtherPasses, furtherAnswers, unknownMembers } = reading;
  const counted = imagesByUrl + documents + keptTokens + furtherPasses + furtherAnswers + unknownMembers.length;
  const isApart = reading.asked !== undefined || reading.toolUses !== undefined || reading.extras !== undefined;
  return reading.isUnbounded || isApart || counted > 0;
}
