import { LONGEST_NAME, MOST_ENTRIES } from '../../core/dialects/bounds';
import { CHAT } from '../../core/dialects/chat';
import { LACKS as CHAT_LACKS } from '../../core/dialects/chat/lacks';
import { RULES as CHAT_RULES } from '../../core/dialects/chat/rules';
import type { ClientDialect } from '../../core/dialects/client-dialect';
import { TOKENS } from '../../core/dialects/effort';
import type { Lack } from '../../core/dialects/lacks';
import { MESSAGES } from '../../core/dialects/messages';
import { LACKS as MESSAGES_LACKS } from '../../core/dialects/messages/lacks';
import { RULES as MESSAGES_RULES } from '../../core/dialects/messages/rules';
import { RESPONSES } from '../../core/dialects/responses';
import { LACKS as RESPONSES_LACKS } from '../../core/dialects/responses/lacks';
import { RULES as RESPONSES_RULES } from '../../core/dialects/responses/rules';
import type { Rules } from '../../core/dialects/rule';
import { LACKS as CONVERSE_LACKS } from '../../plugins/upstreams/converse/lacks';
import { LACKS as GEMINI_LACKS } from '../../plugins/upstreams/gemini/lacks';
import { tableOf } from './markdown-table';

const CLIENTS: Readonly<Record<string, { readonly dialect: ClientDialect; readonly rules: Rules }>> = {
  Messages: { dialect: MESSAGES, rules: MESSAGES_RULES },
  Chat: { dialect: CHAT, rules: CHAT_RULES },
  Responses: { dialect: RESPONSES, rules: RESPONSES_RULES },
};

const UPSTREAMS: Readonly<Record<string, readonly Lack[]>> = {
  Messages: MESSAGES_LACKS,
  Chat: CHAT_LACKS,
  Responses: RESPONSES_LACKS,
  Gemini: GEMINI_LACKS,
  Converse: CONVERSE_LACKS,
};

const ROUTING = [
  ['`translate`', 'calls of a protocol that the upstream does not speak'],
  ['`last`', 'go there after all upstreams that speak it, whatever the strategy; the default'],
  ['`equal`', 'go there as the strategy says, like those of the protocols that it speaks'],
  ['`never`', 'do not go there'],
];

const REASONING = [
  ['`reasoning`', 'the model is told'],
  ['absent', 'nothing, whatever the call says'],
  [
    '`effort`',
    'a word; the nearest one that its dialect has. A number becomes the word of the next larger number below',
  ],
  [
    '`budget`',
    'a number of tokens, below the limit of the answer. A word becomes its number below, at most half of the limit',
  ],
];

const HEAD = `# Dialects

\`npm run --silent dialects > docs/dialects.md\` writes this page from the tables in \`core/dialects\` and \`plugins/upstreams\`, which the gateway itself uses.

An upstream that does not speak a call's protocol can answer it. The gateway translates the request, and the answer back, streamed and not. Clients speak Messages, Chat and Responses;
upstreams speak these, Gemini, Amazon's Converse, and what [an adapter of your own](writing-a-dialect.md) speaks. Embeddings are not translated, and neither are direct addresses, operations such as \`/v1/responses/compact\`. A call to an upstream that speaks its protocol goes through untouched.

## Where calls go

\`translate\` of an upstream says when it is asked for other protocols ([configure](operating.md#configure)). \`translate\` of a model takes precedence:

${tableOf(ROUTING)}
[Failover](routing.md) continues from one dialect to another: the gateway translates the request again for each. The answer has \`X-Routing-Translated: true\`, and the usage record the flag \`translated\`. The bill is
the same as that of the same usage without a translation. The [hold](money.md#the-hold) is made for all candidates, these included.

## What becomes of a request

Nothing changes its meaning silently. A member is **carried** to the upstream, **dropped** by a rule below, or **refused**. A member without a rule is refused, unless it is in an earlier answer that the client repeats: there it is dropped.
\`null\` is as good as absent. No value is made to fit: a temperature of 1.5 does not become 1. An upstream for which a call is refused is not asked. If it cannot be translated for any candidate that is left, the answer is 400 NOT_TRANSLATABLE. Its \`param\` has the client's name of the member. It costs nothing.

**Bounds.** A request is not translated if an id or a name in it has more than ${LONGEST_NAME} characters, or if it has more than ${MOST_ENTRIES.toLocaleString('en')} entries. Entries are turns, the parts of turns and of tool results, calls of tools, tools, and the texts of lists such as \`stop\`. The gateway counts them while the body arrives. Upstreams of the call's own protocol have no such bounds. A translated body counts in [the memory for bodies](security.md#bodies) of its account, beside the body as it came, until its attempt has failed or the call has ended.

Some content takes another form:

- A refusal becomes text in Messages, Gemini and Converse.
- Instructions inside the conversation become words of the user in Gemini and Converse, and of the developer in Responses.
- Tools that take free text become functions with one text; their answers become free text again.
- Images and documents of tool results come after the results in Chat.

A call without a limit gets the model's \`maxOutput\` in Messages, which must have one. A function
without \`strict\` gets \`strict: false\` in Responses, which would assume the opposite. Tools in a namespace of Responses get longer names, and their own ones again in answers.

**Reasoning.** \`reasoning\` of a model says in which form a request sets how much the model reasons:

${tableOf(REASONING)}
The words mean ${Object.entries(TOKENS)
  .map(([word, tokens]) => `\`${word}\` ${tokens.toLocaleString('en')}`)
  .join(', ')} tokens.

**Signatures.** What a model thought goes back to it in the next call with its signature, which other vendors refuse. Clients get signatures of a translated answer sealed with the upstream's name (\`tollgate.…\`) and send them
back as they are. The upstream that made one gets it as it was; for all others the reasoning is left out. From a call that is not translated the gateway cuts sealed parts, and messages that have nothing else, with every other byte as it came. Reasoning never becomes text:
Chat clients are shown none. An upstream that speaks Chat signs nothing, but some such vendors refuse the results of tools without the reasoning before the calls. Such a vendor gets back what it gave in \`reasoning_content\` or \`reasoning\`, in the same member.

## What becomes of an answer

It has the form of the client's protocol, with the upstream's own words, reasons for its end and usage. An error of the upstream that is relayed keeps its status and its words in the form of the client's protocol. A stream that
breaks off ends with that protocol's error event and nothing after it, like [any other](request-path.md#when-a-stream-breaks). No other upstream continues a translated stream.

Translating takes about 0.8 ms for a request of 140 KB (200 turns, 20 tools) and 2 µs for an event of a stream, on an idle core. Bodies above 512 KB are translated piece by piece, so that other calls continue.

## What clients send

\`[]\` is each of a list, and a word in brackets the type or the role of what stands there: \`content[text].text\` is the text in a content block of the type \`text\`, \`messages[tool].name\` a member of a message of the
role \`tool\`. \`*\` stands for a version. A refused member with a value of the last column is dropped. Members that are carried may have no place in the upstream's dialect: see [below](#what-upstreams-lack).
`;

const LACKING = `
## What upstreams lack

The columns have the names by which clients of the protocols know it, and the first the one in the [model of a conversation](writing-a-dialect.md#the-model-of-a-conversation), which adapters use.
`;

/** Returns the text of docs/dialects.md. */
export function dialectsPage(): string {
  const sent = Object.entries(CLIENTS).map(([title, { rules }]) => `\n### From ${title}\n\n${rulesTable(rules)}`);
  const lacking = Object.entries(UPSTREAMS).map(([title, lacks]) => `\n### To ${title}\n\n${lacksTable(title, lacks)}`);
  return [HEAD, ...sent, LACKING, ...lacking].join('');
}

function rulesTable({ all }: Rules): string {
  const rows = all.map(({ member, fate, why, unless = [] }) => [
    `\`${member}\``,
    fate,
    why,
    unless.map((value) => `\`${JSON.stringify(value)}\``).join(', '),
  ]);
  return tableOf([['member', 'is', 'why', 'but for'], ...rows]);
}

/** Returns the table of what an upstream lacks. Calls of its own protocol are not translated. */
function lacksTable(upstream: string, lacks: readonly Lack[]): string {
  const clients = Object.entries(CLIENTS).filter(([title]) => title !== upstream);
  const rows = lacks.map(({ feature, fate, why, when = 'always' }) => [
    `\`${feature}\``,
    ...clients.map(
      ([
        ,
        {
          dialect: { names },
        },
      ]) => (names[feature] === undefined ? '' : `\`${names[feature]}\``),
    ),
    fate,
    when,
    why,
  ]);
  return tableOf([['name', ...clients.map(([title]) => title), 'is', 'when', 'because it'], ...rows]);
}
