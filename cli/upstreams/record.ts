import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { makeFolder } from '../make-folder';
import { showText } from '../output';

type RecordedShape = Answers['POST /admin/v1/upstreams/{name}/record'];

const recordUpstream: Verb = (noun, open) => {
  noun
    .command('record <name>')
    .description('make three tiny real calls to an upstream, and keep its answers for the conformance suite')
    .option('--to <folder>', 'a new folder', 'recordings')
    .option('--model <name>', "the upstream's own name of a model; its cheapest when absent")
    .option('--protocol <protocol>', 'messages, chat, responses or embeddings')
    .option('--credential <name>', 'the name of one of its credentials; absent: one that calls would use now')
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
          `${folder} has what ${model} answered (${protocol}): ${names.join(', ')}.`,
          'expected.json says what the adapter makes of it today. Read all of it before you keep it.',
        ]);
      },
    );
};

export default recordUpstream;
