import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Answers } from '../shapes/answers';
import type { Verb } from './command';
import { Failure } from './failure';
import { makeFolder } from './init';
import { showText } from './output';

type RecordedShape = Answers['POST /admin/v1/upstreams/{name}/record'];

const recordUpstream: Verb = (noun, open) => {
  noun
    .command('record <name>')
    .description('make three small real calls to an upstream, and store its answers for the conformance suite')
    .option('--to <folder>', 'a new folder', 'recordings')
    .option('--model <name>', "the upstream's own name of a model; default: its cheapest")
    .option('--protocol <protocol>', 'messages, chat, responses or embeddings')
    .option('--credential <name>', 'the name of one of its credentials; default: one that calls would use now')
    .action(
      async (
        name: string,
        { to, ...asked }: { readonly to: string; readonly model?: string; readonly credential?: string },
        command,
      ) => {
        const { client, output } = open(command);
        const recorded = await client.ask<RecordedShape>(
          'POST',
          `/upstreams/${encodeURIComponent(name)}/record`,
          asked,
        );
        const { model, protocol, files, problem } = recorded;
        if (problem !== null) throw new Failure(`"${name}" cannot be recorded: ${problem}`);
        const folder = resolve(to);
        await makeFolder(folder);
        for (const { name: file, content } of files) await writeFile(join(folder, file), content);
        const names = files.map((file) => file.name);
        await showText(output, { folder, model, protocol, files: names }, [
          `Stored the answers of ${model} (${protocol}) in ${folder}: ${names.join(', ')}.`,
          'expected.json has what the adapter reads from them today. Check all of it before you commit it.',
        ]);
      },
    );
};

export default recordUpstream;
