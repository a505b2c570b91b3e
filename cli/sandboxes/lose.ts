import type { Verb } from '../command';
import { showOne } from '../output';
import { PLACE_COLUMNS, type PlaceShape } from './place';

const losePlace: Verb = (noun, open) => {
  noun
    .command('lose <place>')
    .description(
      'declare that the node of a place is permanently lost: its sandboxes end as lost, billed to their last confirmation',
    )
    .action(async (place: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/sandboxes/places/${encodeURIComponent(place)}/lose`;
      await showOne(output, await client.ask<PlaceShape>('POST', path, {}), PLACE_COLUMNS);
    });
};

export default losePlace;
