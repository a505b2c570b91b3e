import type { JsonObject } from '../base/json-values';
import type { Conversation } from '../catalog/conversation';
import type { TranslatedCall } from '../catalog/upstream';
import type { UnsupportedFeature } from './limits';

/** How a model differs from others of its dialect: features that only it accepts, and features that only it refuses. */
interface ModelForms {
  /** Whether the model accepts system turns inside the conversation, as separate messages. */
  readonly takesSystemTurns?: true;
  /** Whether the model refuses a tool choice that forces it to call a tool. */
  readonly refusesForcedTools?: true;
  /** Which sampling settings may differ from the default: `one` of temperature and `top_p`, or `none`, which also excludes `top_k`. If absent, both may. */
  readonly sampling?: 'one' | 'none';
  /** The settings that request the least thinking. If absent, `disabled` turns thinking off. */
  readonly minThinking?: { readonly thinking?: JsonObject; readonly effort?: JsonObject };
}

const LOW: ModelForms = { minThinking: { effort: { effort: 'low' } } };

/**
 * The differences between models, by a model's name at the upstream. That name may begin with the vendor and end with a version. All rows
 * that match a name apply to its model.
 */
const ROWS: readonly (readonly [models: RegExp, ModelForms])[] = [
  // Models that accept system turns inside the conversation. Other models answer such turns with status 400. Sources: platform.claude.com,
  // Mid-conversation system messages, and @langchain/anthropic 1.5.13 (its profiles), 2026-10.
  [/claude-(?:opus-4-8|opus-5|sonnet-5-5|haiku-5-5|fable-5|mythos-5)(?!\d)/, { takesSystemTurns: true }],
  // Models that refuse a tool choice that forces a call. Sources: platform.claude.com, What's new in Claude Opus 5.5 and in Claude Sonnet 5.5,
  // 2026-11. The page on Opus 5.5 names Fable 5.1, too.
  [/claude-(?:opus-5-5|sonnet-5-5|fable-5-[1-9]|mythos-5-[1-9])(?!\d)/, { refusesForcedTools: true }],
  [/claude-sonnet-5-5(?!\d)/, { minThinking: { thinking: { type: 'between_tools' } } }],
  [/claude-opus-5-5(?!\d)/, LOW],
  // Models that refuse to turn thinking off with `disabled` (docs.aws.amazon.com/bedrock, Adaptive thinking, 2026-11).
  [/claude-(?:fable-5|mythos-(?:5|preview))(?!\d)/, LOW],
  // Models that accept no sampling setting (platform.claude.com, Migration guides of Claude Opus 4.7 and Claude Sonnet 5.5, 2026-11).
  [/claude-(?:opus-4-[78]|(?:opus|sonnet|fable|mythos)-5)(?!\d)/, { sampling: 'none' }],
  // Models that accept `temperature` or `top_p`, but not both (github.com/chatboxai/chatbox/issues/2670, 2025-09, and
  // github.com/iOfficeAI/AionUi/issues/912, 2026-02: both quote the vendor).
  [/claude-(?:opus-4-[1-6]|(?:sonnet|haiku)-4-[56])(?!\d)/, { sampling: 'one' }],
];

export function formsOf(model: string): ModelForms {
  return Object.assign({}, ...ROWS.filter(([models]) => models.test(model)).map(([, forms]) => forms)) as ModelForms;
}

/** Refuses sampling settings for models that accept only the default. */
export const NO_SAMPLING: UnsupportedFeature = {
  feature: 'temperature',
  action: 'refused',
  when: 'another sampling than the default one, at models that have no other',
  why: 'and `top_p` and `top_k` have one value alone at this model',
  isIn: ({ temperature = 1, topP = 1, topK }, model) =>
    formsOf(model).sampling === 'none' && (temperature !== 1 || topP !== 1 || topK !== undefined),
};

export const ONE_SAMPLING: UnsupportedFeature = {
  feature: 'topP',
  action: 'refused',
  when: 'beside a temperature, at models that take one of them',
  why: 'cannot stand beside a temperature at this model',
  isIn: ({ temperature = 1, topP = 1 }, model) =>
    formsOf(model).sampling !== undefined && temperature !== 1 && topP !== 1,
};

/** Returns a conversation as the model accepts it. A model that refuses a forced tool call gets the tool choice `auto`, so it may answer without a call. */
export function fittedToModel(conversation: Conversation, { model, weaken }: TranslatedCall): Conversation {
  const { refusesForcedTools, sampling } = formsOf(model);
  const { toolChoice, temperature, topP } = conversation;
  const mustFree = refusesForcedTools === true && (toolChoice === 'required' || typeof toolChoice === 'object');
  if (mustFree) weaken?.('toolChoice');
  return {
    ...conversation,
    ...(mustFree && { toolChoice: 'auto' as const }),
    ...(sampling !== undefined && {
      temperature: temperature === 1 ? undefined : temperature,
      topP: topP === 1 ? undefined : topP,
    }),
  };
}
