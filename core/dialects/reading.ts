import type { ModelEntry } from '../catalog/catalog';
import type { CacheWrites, Variant } from '../catalog/price';
import type { Meter } from '../catalog/usage';
import { PASSES_OF_A_LOOP } from './dialect';

/** What a vendor reads for a call, and writes beside the answer, as far as the request tells. The hold is made from it. */
export interface Reading {
  /** Bound of the tokens of the text in the body, for the tokenizers it was measured with. */
  readonly textTokens: number;
  /** Images whose data is in the body. */
  readonly images: number;
  readonly imagesByUrl: number;
  /** Documents that the vendor fetches or unpacks. */
  readonly documents: number;
  /** Tokens of conversations, containers and items that the vendor keeps, as it reported them when they were made. */
  readonly keptTokens: number;
  /** Whether the vendor reads something else that is not in the body: nothing but the context window bounds it. */
  readonly isUnbounded: boolean;
  /** Members that no table has and that count as outside; an upstream may call them free. */
  readonly heldMembers: readonly string[];
  /** Everything in the request that no table has. */
  readonly unknownMembers: readonly string[];
  /** How many times the model's `toolOverheadTokens` are read. */
  readonly toolOverheads: number;
  /** Whether there are tools, wherever the request names them. */
  readonly hasTools: boolean;
  /** How many further times the vendor may run the model, each with an input of up to the context window. */
  readonly furtherPasses: number;
  /** How many further answers of up to the model's `maxOutput` the vendor may write. */
  readonly furtherAnswers: number;
  /** Bound of the tokens of the predicted output, for the same tokenizers: what the answer does not use of it costs as output, too. */
  readonly predictedTokens: number;
  /** For how long the vendor may keep what it reads in its cache. */
  readonly cacheWrites: CacheWrites;
  /** The tier, speed and region that the request asks for, where that has a price of its own. */
  readonly asked?: Variant | undefined;
  /** What runs at the vendor; undefined where there is nothing. */
  readonly toolUses?: readonly ToolUse[] | undefined;
}

/** Something that runs at the vendor: it is charged by the piece, or runs the model as often as its limit says. */
export interface ToolUse {
  /** Undefined for a tool that costs nothing but tokens. */
  readonly meter: Meter | undefined;
  /** The most pieces of one call; undefined where the model says how many. */
  readonly pieces: number | undefined;
  /** Fewer than the model says, because the money does not suffice for more. */
  readonly atMost?: number;
  /** Undefined for a tool that takes no limit. */
  readonly limit: ToolLimit | undefined;
  /** Whether answers report how many pieces there were; otherwise each call is charged for `pieces`. */
  readonly isReported: boolean;
  /** Where it stands in the request, for errors. */
  readonly param: string;
}

/** The limit of uses that a tool of a request has, or is given. */
export interface ToolLimit {
  /** Where neither the call nor the model says. */
  readonly otherwise: number;
  /** Whether each use may run the model once more; otherwise `furtherPasses` has them. */
  readonly runsModel: boolean;
  /** All tools of the call share it. */
  readonly isShared?: boolean;
  /** Undefined where the call has one. */
  readonly insert: LimitPlace | undefined;
}

/** Bytes `from`..`to` of the body become the limit, as a member of this name where one is given. */
export interface LimitPlace {
  readonly from: number;
  readonly to: number;
  readonly name: string | undefined;
}

/** Returns how many pieces of a tool one call can be charged for at a model. */
export function piecesOf(
  { meter, pieces, limit, atMost = Number.POSITIVE_INFINITY }: ToolUse,
  { toolUses }: Pick<ModelEntry, 'toolUses'>,
): number {
  const usual = (meter === undefined ? undefined : toolUses?.get(meter)) ?? limit?.otherwise ?? 1;
  return Math.min(pieces ?? usual, atMost);
}

/** Returns how many further times the vendor may run a model in one call. Tools share one loop, and some a limit. */
export function furtherPassesOf(reading: Reading, model: Pick<ModelEntry, 'toolUses'>): number {
  const { furtherPasses, toolUses } = reading;
  if (toolUses === undefined) return furtherPasses;
  let uses = 0;
  let shared = 0;
  for (const tool of toolUses) {
    if (tool.limit?.runsModel !== true) continue;
    if (tool.limit.isShared) shared = Math.max(shared, piecesOf(tool, model));
    else uses += piecesOf(tool, model);
  }
  return furtherPasses + shared + Math.min(uses, PASSES_OF_A_LOOP);
}

/** Whether the vendor may charge for something that is not in the body, or by another price than the plain one. */
export function reachesOutside(reading: Omit<Reading, 'cacheWrites'>): boolean {
  const { imagesByUrl, documents, keptTokens, furtherPasses, furtherAnswers, unknownMembers } = reading;
  const counted = imagesByUrl + documents + keptTokens + furtherPasses + furtherAnswers + unknownMembers.length;
  return reading.isUnbounded || reading.asked !== undefined || reading.toolUses !== undefined || counted > 0;
}

/** The reading of a request that is nothing but text. */
export function textReading(textTokens: number): Reading {
  return { ...NOTHING, textTokens };
}

const NOTHING: Reading = {
  textTokens: 0,
  images: 0,
  imagesByUrl: 0,
  documents: 0,
  keptTokens: 0,
  isUnbounded: false,
  heldMembers: [],
  unknownMembers: [],
  toolOverheads: 0,
  hasTools: false,
  furtherPasses: 0,
  furtherAnswers: 0,
  predictedTokens: 0,
  cacheWrites: 'hour',
};
