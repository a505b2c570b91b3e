import type { Variant } from '../catalog/price';

/** What a vendor reads for a call, and writes beside the answer, as far as the request tells. The hold is made from it. */
export interface Reading {
  /** Bound of the tokens of the text in the body, for the tokenizers it was measured with. */
  readonly textTokens: number;
  /** Images whose data is in the body. */
  readonly images: number;
  readonly imagesByUrl: number;
  /** Documents that the vendor fetches or unpacks. */
  readonly documents: number;
  /** Tokens of conversations and containers that the vendor keeps, as it reported them when they were made. */
  readonly keptTokens: number;
  /** Whether the vendor reads something else that is not in the body: nothing but the context window bounds it. */
  readonly isUnbounded: boolean;
  /** Members that no table has and that count as outside; an upstream may call them free. */
  readonly heldMembers: readonly string[];
  /** Everything in the request that no table has. */
  readonly unknownMembers: readonly string[];
  /** How many times the model's `toolOverheadTokens` are read. */
  readonly toolOverheads: number;
  /** How many further times the vendor may run the model, each with an input of up to the context window. */
  readonly furtherPasses: number;
  /** How many further answers of up to the model's `maxOutput` the vendor may write. */
  readonly furtherAnswers: number;
  /** Tokens of the predicted output: what the answer does not use of it costs as output, too. */
  readonly predictedTokens: number;
  /** The tier, speed and region that the request asks for, where that has a price of its own. */
  readonly asked?: Variant | undefined;
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
  furtherPasses: 0,
  furtherAnswers: 0,
  predictedTokens: 0,
};
