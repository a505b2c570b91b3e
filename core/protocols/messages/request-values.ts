import { asObject } from '../../json-values';
import type { Keeping, NeededModel, Needs } from '../request-table';

/** Returns the thread that a value names. A thread has the id of its newest answer, and each answer gives it another. */
export function threadOf(value: unknown): Keeping | undefined {
  const { type, previous_message_id: id, ...others } = asObject(value) ?? {};
  if (Object.keys(others).length > 0) return undefined;
  if (type === 'create' && id === undefined) return { names: [], makes: ['thread'], isOutside: false };
  if (type !== 'continue' || typeof id !== 'string') return undefined;
  return { names: [{ kind: 'thread', id }], makes: ['thread'], isOutside: false };
}

export function containerOf(value: unknown): Keeping | undefined {
  if (typeof value === 'string')
    return { names: [{ kind: 'container', id: value }], makes: ['container'], isOutside: false };
  const container = asObject(value);
  if (container === undefined) return undefined;
  const { id = null, skills, ...others } = container;
  if (Object.keys(others).length > 0 || !(id === null || typeof id === 'string')) return undefined;
  const own = ownSkills(skills ?? []);
  if (own === undefined) return undefined;
  const named = id === null ? [] : [{ kind: 'container' as const, id }];
  return { names: [...named, ...own.names], makes: ['container'], isOutside: own.isOutside };
}

/** Returns the skills that the vendor's customers made. The vendor's own skills belong to no account. */
function ownSkills(skills: unknown): Pick<Keeping, 'names' | 'isOutside'> | undefined {
  if (!Array.isArray(skills)) return undefined;
  const types = skills.map((skill) => asObject(skill)?.['type']);
  if (!types.every((type) => type === 'anthropic' || type === 'custom')) return undefined;
  return { names: types.includes('custom') ? [{ kind: 'skill' }] : [], isOutside: types.length > 0 };
}

/** Whether the edits of the context only clear parts of it, which the vendor drops before the model reads it. */
export function onlyClears(value: unknown): boolean {
  const context = asObject(value);
  if (context === undefined || Object.keys(context).some((name) => name !== 'edits')) return false;
  const edits = context['edits'] ?? [];
  return Array.isArray(edits) && edits.every((edit) => /^clear_[a-z_]+_[0-9]+$/.test(String(asObject(edit)?.['type'])));
}

/** Returns the models of `fallbacks`; undefined for a form that the table does not know, or a speed with a price of its own. */
export function fallbackModels(value: unknown): Needs | undefined {
  if (!Array.isArray(value)) return undefined;
  const models = value.map(fallbackModel);
  return models.every((each) => each !== undefined) ? { models } : undefined;
}

const OF_FALLBACK: readonly string[] = ['model', 'max_tokens', 'output_config', 'speed', 'thinking'];

function fallbackModel(value: unknown): NeededModel | undefined {
  const fallback = asObject(value) ?? {};
  if (Object.keys(fallback).some((name) => !OF_FALLBACK.includes(name))) return undefined;
  const { model, max_tokens: limit = null, speed = null } = fallback;
  if (typeof model !== 'string' || (speed !== null && speed !== 'standard')) return undefined;
  if (limit !== null && !(Number.isSafeInteger(limit) && Number(limit) >= 0)) return undefined;
  return { model, maxOutputTokens: limit === null ? undefined : Number(limit) };
}
