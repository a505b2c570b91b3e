import { Argument } from 'commander';
import { PROTOCOL_NAMES } from '../core/catalog/protocols';
import { CHAT_UNSUPPORTED } from '../core/protocols/chat/limits';
import { CHAT_RULES } from '../core/protocols/chat/request';
import { CONVERSE_UNSUPPORTED } from '../core/protocols/converse/limits';
import { GEMINI_UNSUPPORTED } from '../core/protocols/gemini/limits';
import type { UnsupportedFeature } from '../core/protocols/limits';
import { MESSAGES_UNSUPPORTED } from '../core/protocols/messages/limits';
import { MESSAGES_RULES } from '../core/protocols/messages/request';
import { costLines, REQUEST_TABLES } from '../core/protocols/request-tables';
import { RESPONSES_UNSUPPORTED } from '../core/protocols/responses/limits';
import { RESPONSES_RULES } from '../core/protocols/responses/request';
import { publishedGatewaySchema, publishedSystemSchema } from '../core/serving/published-schema';
import type { Verb } from './command';
import { folderOf, loadFolder } from './config';
import { showList } from './output';

export const explainMembers: Verb = (noun, open) => {
  noun
    .command('members')
    .addArgument(new Argument('[protocol]', 'whose members; all without it').choices(PROTOCOL_NAMES))
    .description('list request members, content parts and tools, and what each means for the hold')
    .action(async (wanted: string | undefined, _options, command) => {
      const items = PROTOCOL_NAMES.filter((protocol) => protocol === (wanted ?? protocol)).flatMap((protocol) =>
        costLines(REQUEST_TABLES[protocol]).map((line) => ({ protocol, ...line })),
      );
      await showList(
        open(command).output,
        { items },
        {
          protocol: ({ protocol }) => protocol,
          place: ({ place }) => place,
          name: ({ name }) => name,
          class: ({ class: of }) => of,
          sharedObjects: ({ names }) => names,
          pieces: ({ meter }) => meter,
          'free values': ({ freeValues }) => freeValues,
          why: ({ why }) => why,
        },
      );
    });
};

const CLIENTS = { messages: MESSAGES_RULES, chat: CHAT_RULES, responses: RESPONSES_RULES };

const UNSUPPORTED: Readonly<Record<string, readonly UnsupportedFeature[]>> = {
  messages: MESSAGES_UNSUPPORTED,
  chat: CHAT_UNSUPPORTED,
  responses: RESPONSES_UNSUPPORTED,
  gemini: GEMINI_UNSUPPORTED,
  converse: CONVERSE_UNSUPPORTED,
};

export const explainDialects: Verb = (noun, open) => {
  noun
    .command('dialects')
    .addArgument(
      new Argument('[dialect]', 'of the client or the upstream; all without it').choices(Object.keys(UNSUPPORTED)),
    )
    .description('list what becomes of a translated request: by the dialect of its client, then of its upstream')
    .action(async (wanted: string | undefined, _options, command) => {
      const items = [...sentRows(), ...lackedRows()].filter(({ dialect }) => dialect === (wanted ?? dialect));
      await showList(
        open(command).output,
        { items },
        {
          side: ({ side }) => side,
          dialect: ({ dialect }) => dialect,
          name: ({ name, names }) => [name, ...new Set(Object.values(names))].join(', '),
          is: ({ action }) => action,
          when: ({ when }) => when,
          why: ({ why }) => why,
        },
      );
    });
};

/** Returns a row for each member that clients may send in a dialect: the gateway's action, when it applies, and why. */
function sentRows() {
  return Object.entries(CLIENTS).flatMap(([dialect, rules]) =>
    rules.all.map(({ member, action, why, harmless }) => {
      const isOpen = action !== 'refused' || harmless === undefined;
      const when = isOpen ? 'always' : `not ${harmless.map((each) => JSON.stringify(each)).join(', ')}`;
      return { side: 'from', dialect, name: member, names: {}, action, when, why };
    }),
  );
}

/** Returns a row for each feature that an upstream's dialect cannot express, with the feature's names in other dialects. */
function lackedRows() {
  return Object.entries(UNSUPPORTED).flatMap(([dialect, lacks]) =>
    lacks.map(({ feature, action, why, when = 'always' }) => {
      const others = Object.entries(CLIENTS).filter(([client]) => client !== dialect);
      const names = Object.fromEntries(others.map(([client, rules]) => [client, rules.names[feature]]));
      return { side: 'to', dialect, name: feature, names, action, when, why };
    }),
  );
}

export const explainSettings: Verb = (noun, open) => {
  noun
    .command('settings [text]')
    .description('list the settings of both configuration files whose path has the text in it')
    .action(async (text = '', _options, command) => {
      const { output, environment } = open(command);
      const loaded = loadFolder(folderOf(undefined, environment), environment);
      const items = Object.entries({ gateway: publishedGatewaySchema(loaded), system: publishedSystemSchema(loaded) })
        .flatMap(([file, schema]) => settingsOf(schema, '').map((setting) => ({ file, ...setting })))
        .filter(({ setting }) => setting.includes(text));
      await showList(
        output,
        { items },
        {
          file: ({ file }) => file,
          setting: ({ setting }) => setting,
          default: (item) => (item.default === undefined ? '' : JSON.stringify(item.default)),
          is: ({ is }) => is,
        },
      );
    });
};

/** Lists the settings of a schema by their paths, each once. `<name>` in a path stands for a name that the operator chooses. */
function settingsOf(schema: object, path: string): readonly { setting: string; default: unknown; is: string }[] {
  const found = Object.entries(schema).flatMap(([word, value]) => {
    if (word === 'default' || typeof value !== 'object' || value === null) return [];
    if (word !== 'properties')
      return [value]
        .flat()
        .filter((each) => typeof each === 'object')
        .flatMap((each) => settingsOf(each, word === 'additionalProperties' ? `${path}<name>.` : path));
    return Object.entries<{ default?: unknown; description: string }>(value).flatMap(([name, each]) => [
      { setting: `${path}${name}`, default: each.default, is: each.description },
      ...settingsOf(each, `${path}${name}.`),
    ]);
  });
  return [...new Map(found.map((each) => [`${each.setting} ${each.is}`, each])).values()];
}
