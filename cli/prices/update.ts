import { readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import type { Verb } from '../command';
import { folderOf, soundConfiguration } from '../config';
import { confirm } from '../confirm';
import { showList, showText } from '../output';
import { DIFFERENCE_COLUMNS, differencesOf, type PublishedEntry, publishedEntries } from './differences';

const updatePrices: Verb = (noun, open) => {
  noun
    .command('update [folder]')
    .description(
      'write what vendors publish into gateway.config.yml: context, maxOutput and price of models that differ',
    )
    .option('--yes', 'do not ask for confirmation')
    .action(async (given: string | undefined, { yes }: { yes?: true }, command) => {
      const { output, environment } = open(command);
      const entries = publishedEntries(soundConfiguration(given, environment)).filter(
        (entry) => differencesOf(entry).length > 0,
      );
      const items = entries.flatMap(differencesOf);
      if (items.length === 0) return showText(output, { items, written: false }, ['Nothing differs.']);
      if (!output.json) await showList(output, { items }, DIFFERENCE_COLUMNS);
      const otherwise = 'add --yes to write it.';
      if (yes !== true) await confirm(output, { question: 'Write it?', otherwise, declined: 'Nothing was written.' });
      const file = join(resolve(folderOf(given, environment)), 'gateway.config.yml');
      await writeWhole(file, updated(await readFile(file, 'utf8'), entries));
      await showText(output, { items, written: true }, [`Written to ${file}. Check it with: tollgate config validate`]);
    });
};

/**
 * Returns the file's text with the published values, and keeps comments and everything else. A model with `from` loses its own
 * values, because it no longer needs them.
 */
function updated(text: string, entries: readonly PublishedEntry[]): string {
  const document = parseDocument(text);
  for (const { upstream, model, published } of entries) {
    const path = ['serviceEndpoints', upstream.name, 'models', model.name];
    const hasFrom = document.hasIn([...path, 'from']);
    for (const member of ['context', 'maxOutput', 'price'] as const) {
      if (hasFrom) document.deleteIn([...path, member]);
      else document.setIn([...path, member], document.createNode(published[member], { flow: member === 'price' }));
    }
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** Writes a file whole, so that the gateway never reads half of it. */
async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.draft`;
  await writeFile(draft, text);
  await rename(draft, file);
}

export default updatePrices;
