import { Argument } from 'commander';
import type { Protocol } from '../../core/catalog/protocols';
import { DIALECTS, type DialectRow, dialectRows } from '../../core/dialects/dialects';
import type { Verb } from '../command';
import { type Columns, showList } from '../output';

const COLUMNS: Columns<DialectRow> = {
  place: ({ place }) => place,
  name: ({ name }) => name,
  class: ({ class: of }) => of,
  sharedObjects: ({ names }) => names,
  pieces: ({ meter }) => meter,
  'free values': ({ freeValues }) => freeValues,
  why: ({ why }) => why,
};

const showDialect: Verb = (noun, open) => {
  noun
    .command('show')
    .addArgument(new Argument('<dialect>', 'whose members').choices(Object.keys(DIALECTS)))
    .description('list request members, content parts and tools, and what each means for the hold')
    .action(async (dialect: Protocol, _options, command) => {
      await showList(open(command).output, { items: dialectRows(DIALECTS[dialect]) }, COLUMNS);
    });
};

export default showDialect;
