import type { Verb } from '../command';
import { showList } from '../output';
import type { ListShape } from '../shapes';
import { PLACE_COLUMNS, type PlaceShape } from './place';

const listPlaces: Verb = (noun, open) => {
  noun
    .command('places')
    .description('list places of sandboxes that only some nodes can reach, last seen first')
    .action(async (_options, command) => {
      const { client, output } = open(command);
      const answer = await client.ask<ListShape<PlaceShape>>('GET', '/sandboxes/places');
      await showList(output, answer, PLACE_COLUMNS);
    });
};

export default listPlaces;
