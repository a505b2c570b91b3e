import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object, oneOf, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { BY_REQUIREMENTS, byId, readCeiling } from '../asking/creation';
import { insertQuote } from '../books/quotes';
import { showTime } from '../books/rows';
import { OFFERING } from '../books/shapes';
import type { OfferedInstance } from '../offers/offering';
import { matchOffering, readRequirements } from '../offers/requirements';
import type { SandboxService } from '../service';

const BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { requirements: {}, maxEstimatedHourlyUsd: {}, offeringId: {} },
} as const;

export function createQuoteRoute(service: SandboxService): Route {
  const readBody = jsonBody<Settings<typeof BODY>>(BODY);
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: '/v1/quotes',
    summary: 'Request a price that is binding for one creation; costs nothing.',
    body: {
      anyOf: [BY_REQUIREMENTS, byId('offeringId')],
      example: { requirements: { capabilities: ['exec', 'files'] }, maxEstimatedHourlyUsd: '0.10' },
    },
    answers: { 201: { description: 'The quote.', schema: QUOTE } },
    errors: ['SELECTION_INVALID', 'REQUIREMENTS_INVALID', 'OFFERING_NOT_FOUND', 'NO_MATCHING_OFFERING'],
    handle: async ({ key }, request, response) => {
      const chosen = choose(await readBody(request), service.offerings());
      const quote = await insertQuote(service.database, key.accountId, chosen, service.now());
      const { billing } = quote.offering;
      sendJson(response, 201, {
        quoteId: quote.id,
        status: 'VALID',
        offeringId: quote.offeringId,
        offering: quote.offering,
        estimatedHourlyUsd: billing.estimatedHourlyUsdByState.RUNNING,
        initialReservationUsd: billing.initialReservationUsd,
        createdAt: showTime(quote.createdAtMs),
        expiresAt: showTime(quote.expiresAtMs),
      });
    },
  };
}

function choose(
  { requirements, maxEstimatedHourlyUsd, offeringId }: Settings<typeof BODY>,
  offered: readonly OfferedInstance[],
): OfferedInstance {
  if ((requirements === undefined) === (offeringId === undefined)) {
    throw fail('SELECTION_INVALID', { message: 'Expected exactly one of requirements and offeringId.' });
  }
  if (requirements === undefined) {
    if (maxEstimatedHourlyUsd !== undefined) {
      throw fail('SELECTION_INVALID', {
        param: 'maxEstimatedHourlyUsd',
        message: 'maxEstimatedHourlyUsd goes with requirements only.',
      });
    }
    const found = offered.find(({ offering, isEnabled }) => isEnabled && offering.id === offeringId);
    if (found === undefined) throw fail('OFFERING_NOT_FOUND', { param: 'offeringId' });
    return found;
  }
  const ceiling = readCeiling(maxEstimatedHourlyUsd, 'maxEstimatedHourlyUsd', 'REQUIREMENTS_INVALID');
  const match = matchOffering(offered, readRequirements(requirements, 'requirements'), ceiling);
  if (match === undefined) throw fail('NO_MATCHING_OFFERING', { param: 'requirements' });
  return match;
}

const QUOTE = object({
  quoteId: shape.uuid,
  status: oneOf('VALID'),
  offeringId: shape.uuid,
  offering: OFFERING,
  estimatedHourlyUsd: shape.usd,
  initialReservationUsd: shape.usd,
  createdAt: shape.time,
  expiresAt: shape.time,
});
