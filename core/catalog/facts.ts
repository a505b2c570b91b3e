import { listOf, object, oneOf, shape } from '../http/shape';

/** The kinds of content that a model reads or writes. */
export const MEDIA = ['text', 'image', 'audio', 'document', 'video'] as const;
export type Medium = (typeof MEDIA)[number];

/**
 * What is declared of a model at an upstream beside its price. A fact that nobody declared is undefined: it is unknown, and satisfies no
 * demand of a call.
 */
export interface ModelFacts {
  /** The regions in which the upstream may process a call. */
  readonly region?: readonly string[] | undefined;
  /** For how many days the upstream keeps what it was sent; 0 for not at all. */
  readonly retention?: number | undefined;
  /** Whether the upstream trains models with what it was sent. */
  readonly trains?: boolean | undefined;
  readonly inputs?: readonly Medium[] | undefined;
  readonly outputs?: readonly Medium[] | undefined;
  readonly tools?: boolean | undefined;
  readonly structuredOutputs?: boolean | undefined;
  readonly reasoning?: boolean | undefined;
  /** The days of its release and of its end, such as 2026-03-05. */
  readonly released?: string | undefined;
  readonly retires?: string | undefined;
}

export const UNKNOWN = 'unknown';
const NOTHING_DECLARED: ModelFacts = {};

interface FactualModel {
  readonly context: number;
  readonly maxOutput: number;
  readonly facts?: ModelFacts | undefined;
}

/** Returns the declared facts of a model at an upstream. */
export function declaredFacts({ facts = NOTHING_DECLARED }: Pick<FactualModel, 'facts'>): ModelFacts {
  return facts;
}

/** Returns the regions as one text, such as `eu,us`. */
export function regionText({ region }: ModelFacts): string {
  return region?.join() ?? UNKNOWN;
}

export function retentionText({ retention }: ModelFacts): string {
  return retention === undefined ? UNKNOWN : retention === 0 ? 'none' : String(retention);
}

export function trainsText({ trains }: ModelFacts): 'yes' | 'no' | typeof UNKNOWN {
  return trains === undefined ? UNKNOWN : trains ? 'yes' : 'no';
}

/** Shows the facts of a model at an upstream in answers. */
export function showFacts(upstream: { readonly name: string }, model: FactualModel) {
  const facts = declaredFacts(model);
  return {
    upstream: upstream.name,
    region: facts.region ?? UNKNOWN,
    retention: facts.retention === 0 ? 'none' : (facts.retention ?? UNKNOWN),
    trains: trainsText(facts),
    inputs: facts.inputs ?? UNKNOWN,
    outputs: facts.outputs ?? UNKNOWN,
    tools: facts.tools ?? UNKNOWN,
    structuredOutputs: facts.structuredOutputs ?? UNKNOWN,
    reasoning: facts.reasoning ?? UNKNOWN,
    context: model.context,
    maxOutput: model.maxOutput,
    released: facts.released ?? UNKNOWN,
    retires: facts.retires ?? UNKNOWN,
  };
}

const orUnknown = (known: object) => ({ anyOf: [known, oneOf(UNKNOWN)] });
const YES_OR_NO = orUnknown(shape.yes);
const KINDS = orUnknown(listOf(oneOf(...MEDIA)));
const DAY = { type: 'string', example: '2026-03-05' } as const;

/** The schema of what `showFacts` returns, for the OpenAPI document. */
export const FACTS = object({
  upstream: shape.text,
  region: orUnknown(shape.texts),
  retention: { anyOf: [shape.integer, oneOf('none', UNKNOWN)], description: 'Days, or `none`.' },
  trains: oneOf('no', 'yes', UNKNOWN),
  inputs: KINDS,
  outputs: KINDS,
  tools: YES_OR_NO,
  structuredOutputs: YES_OR_NO,
  reasoning: YES_OR_NO,
  context: shape.integer,
  maxOutput: shape.integer,
  released: DAY,
  retires: DAY,
} satisfies Record<keyof ReturnType<typeof showFacts>, object>);

/** A model that its vendor ends soon, or has ended. */
export interface RetiringModel {
  readonly upstream: string;
  readonly model: string;
  /** The day of the model's end, such as 2026-12-24. */
  readonly retires: string;
}

const SOON_MS = 30 * 86_400_000;

interface RetiringUpstream {
  readonly name: string;
  readonly models: readonly (FactualModel & { readonly name: string })[];
}

/** Returns the models that retire within 30 days, or have already. */
export function retiringModels(upstreams: readonly RetiringUpstream[], nowMs = Date.now()): readonly RetiringModel[] {
  return upstreams.flatMap((upstream) =>
    upstream.models.flatMap((model) => {
      const { retires } = declaredFacts(model);
      if (retires === undefined || Date.parse(retires) - nowMs > SOON_MS) return [];
      return [{ upstream: upstream.name, model: model.name, retires }];
    }),
  );
}
