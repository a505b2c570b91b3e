import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { append } from '../base/collections';
import {
  type Conversation,
  type Feature,
  NotTranslatable,
  type Part,
  type Source,
  type Tool,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
} from '../catalog/conversation';
import type { TranslatedCall } from '../catalog/upstream';
import { ORPHAN, rejectUnsupported, SILENT, TWO_TOOLS, type UnsupportedFeature } from './limits';
import { formsOf } from './models';
import { unsealFor } from './seal';
import { isHeldStrictly } from './strict-schema';

/** The formats of ids and texts that the vendors of a dialect accept. */
export interface Forms {
  /** The accepted ids of tool calls. The gateway replaces all other ids, in the call and in its result. */
  readonly callId: RegExp;
  /** The name of the dialect in signatures. Reasoning with a signature of another dialect is omitted. */
  readonly dialect: string;
  /** Whether vendors refuse a text that is only white space. Such texts are then omitted. */
  readonly refusesBlank: boolean;
  /** Whether vendors refuse `strict` for a schema that permits undeclared values. The gateway then omits `strict`, and reports that to the client. */
  readonly holdsClosedOnly?: true;
  /**
   * How system turns inside the conversation are sent, for dialects that want adjacent turns of one role in one message. `user`: they
   * become text of the user. `by model`: they stay system turns if the model accepts them. If this member is absent, every turn stays as it
   * is.
   */
  readonly system?: 'user' | 'by model';
}

/**
 * The tool names that all dialects accept: Anthropic's (platform.claude.com, Define tools, 2026-11), Amazon's (docs.aws.amazon.com/bedrock,
 * ToolUseBlock, 2026-11), and OpenAI's function names, as users have reported.
 */
const NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;

const MAX_NAME_LENGTH = 64;
/** The longest id of a tool call that Chat accepts, and therefore the longest replacement id. */
const MAX_ID_LENGTH = 40;

/** Registered media types by the unregistered names that clients send and vendors refuse. */
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ['image/jpg', 'image/jpeg'],
  ['image/pjpeg', 'image/jpeg'],
  ['image/x-png', 'image/png'],
  ['application/x-pdf', 'application/pdf'],
  ['text/x-markdown', 'text/markdown'],
]);

/**
 * Returns the conversation of a call in the formats that a dialect's vendors accept. Changes that alter the meaning are recorded with
 * `weaken`.
 * @throws NotTranslatable for features that the dialect refuses
 */
export function fitted(call: TranslatedCall, lacks: readonly UnsupportedFeature[], forms: Forms): Conversation {
  const { conversation, model, weaken } = call;
  rejectUnsupported(call, lacks);
  const { instructions, tools, toolChoice, outputFormat } = conversation;
  const fitting = new Fitting(forms, call.upstream);
  const turns = conversation.turns.flatMap((turn) => fitting.turn(turn));
  if (turns.length === 0 && conversation.turns.length > 0) throw new NotTranslatable(SILENT.feature, SILENT.why);
  const strictOf = (feature: Feature, { strict, schema }: Pick<Tool, 'strict' | 'schema'>): boolean | undefined => {
    if (strict !== true || forms.holdsClosedOnly !== true || isHeldStrictly(schema)) return strict;
    weaken?.(feature);
    return undefined;
  };
  const named = (tool: Tool) => ({ ...tool, name: shortName(tool.name), strict: strictOf('tools', tool) });
  return {
    ...conversation,
    instructions: instructions.filter(({ text }) => fitting.says(text)),
    turns:
      forms.system === undefined
        ? turns
        : inMessages(turns, forms.system === 'by model' && formsOf(model).takesSystemTurns === true),
    tools: distinct(tools.map(named)),
    toolChoice: typeof toolChoice === 'object' ? { ...toolChoice, tool: shortName(toolChoice.tool) } : toolChoice,
    outputFormat:
      outputFormat?.kind === 'schema'
        ? {
            ...outputFormat,
            name: outputFormat.name === undefined ? undefined : shortName(outputFormat.name),
            strict: strictOf('outputFormat', outputFormat),
          }
        : outputFormat,
  };
}

/** Returns a tool's name in a form that all vendors accept. Different names stay different. */
export function shortName(name: string): string {
  return NAME.test(name) ? name : shortened(name, MAX_NAME_LENGTH);
}

const HASH_DIGITS = 16;

function shortened(text: string, length: number): string {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS);
  const head = text.slice(0, length - HASH_DIGITS - 2).replace(/[^a-zA-Z0-9_-]/g, '_');
  return `${/^[0-9-]/.test(head) ? '_' : ''}${head}_${digest}`;
}

/**
 * Joins adjacent turns of one role, with tool results first. System turns inside the conversation become text of the user if the vendor
 * refuses them there. Most models refuse them everywhere. Other models accept them only between a message of the user and one of the
 * assistant (platform.claude.com, Mid-conversation system messages, 2026-11; for Vertex as reported).
 */
function inMessages(turns: readonly Turn[], takesSystem: boolean): readonly Turn[] {
  const messages: { role: Turn['role']; parts: Part[] }[] = [];
  for (const [at, { role, parts }] of turns.entries()) {
    const last = messages.at(-1);
    const mayStand = takesSystem && last?.role === 'user' && (turns[at + 1]?.role ?? 'assistant') === 'assistant';
    const side = role === 'system' && !mayStand ? 'user' : role;
    if (last?.role === side) append(last.parts, parts);
    else messages.push({ role: side, parts: [...parts] });
  }
  const isResult = ({ kind }: Part) => kind === 'tool_result';
  return messages.map(({ role, parts }) => ({
    role,
    parts: [...parts.filter(isResult), ...parts.filter((part) => !isResult(part))],
  }));
}

/** Returns the tools without duplicates. @throws NotTranslatable for two different tools with one name */
function distinct(tools: readonly Tool[]): readonly Tool[] {
  const known = new Map<string, Tool>();
  for (const tool of tools) {
    const other = known.get(tool.name);
    if (other !== undefined && !isDeepStrictEqual(other, tool)) throw new NotTranslatable('tools', TWO_TOOLS.why);
    known.set(tool.name, tool);
  }
  return [...known.values()];
}

class Fitting {
  readonly #used = new Set<string>();
  /** The tool calls by id that still lack their results, with the last turn that used the id. */
  readonly #calls = new Map<string, { readonly turn: Turn; readonly ids: string[] }>();

  constructor(
    private readonly forms: Forms,
    private readonly upstream: string,
  ) {}

  /** Returns whether the vendor accepts a text. An empty text is never accepted, and some vendors also refuse white space. */
  says(text: string): boolean {
    return this.forms.refusesBlank ? text.trim() !== '' : text !== '';
  }

  /** Returns the turn in the vendor's formats, or nothing if no part of the turn remains. */
  turn(turn: Turn): readonly Turn[] {
    const parts = this.#parts(turn.parts, turn);
    return parts.length === 0 ? [] : [{ role: turn.role, parts }];
  }

  #parts(parts: readonly Part[], turn: Turn): readonly Part[] {
    return parts.flatMap((part) => this.#part(part, turn));
  }

  #part(part: Part, turn: Turn): readonly Part[] {
    switch (part.kind) {
      case 'text':
      case 'refusal':
        return this.says(part.text) ? [part] : [];
      case 'image':
      case 'document':
        return [withMediaType(part)];
      case 'tool_call':
        return [{ ...part, id: this.#idOfCall(part, turn), name: shortName(part.name) }];
      case 'tool_result':
        return [
          { ...part, id: this.#idOfResult(part), parts: this.#parts(part.parts, turn) as ToolResultPart['parts'] },
        ];
      case 'reasoning':
        return unsealFor(part.signature, this.upstream, this.forms.dialect) === undefined ? [] : [part];
      default:
        return [part];
    }
  }

  /** Returns an id that no other call of the conversation has. Some upstreams restart their numbering of calls in each answer. */
  #idOfCall({ id }: ToolCallPart, turn: Turn): string {
    const one = this.#used.has(id) ? `${id} ${this.#used.size}` : id;
    const own = one === id && this.forms.callId.test(id) ? id : shortened(one, MAX_ID_LENGTH);
    this.#used.add(id).add(own);
    const same = this.#calls.get(id);
    if (same?.turn === turn) same.ids.push(own);
    else this.#calls.set(id, { turn, ids: [own] });
    return own;
  }

  /** Returns the id of the call that a result answers. If several calls of the last turn have one id, results match them in order. */
  #idOfResult({ id }: ToolResultPart): string {
    const ids = this.#calls.get(id)?.ids;
    if (ids === undefined) throw new NotTranslatable(ORPHAN.feature, ORPHAN.why);
    return (ids.length > 1 ? ids.shift() : ids[0]) as string;
  }
}

function withMediaType<P extends { readonly source: Source | { readonly text: string } }>(part: P): P {
  const { source } = part;
  if (!('mediaType' in source) || source.mediaType === undefined) return part;
  const [plain = ''] = source.mediaType.toLowerCase().split(';');
  const mediaType = plain.trim();
  return { ...part, source: { ...source, mediaType: MEDIA_TYPES.get(mediaType) ?? mediaType } };
}
