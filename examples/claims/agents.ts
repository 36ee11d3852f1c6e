import { defineTroupe } from '../../src/index.ts'; // from 'troupe' in your own project
import { model } from '../model.ts';
import * as scripts from './scripts.ts';
import { type Claim, earlierClaims, openClaim, pay } from './tools.ts';

/** What the tools are given: here a list in memory, in your own project a database. */
export const app = () => ({ claims: [] as Claim[] });

export const troupe = defineTroupe({
  app,
  tools: [openClaim, earlierClaims, pay],
  agents: [
    {
      id: 'intake',
      role: 'manager',
      description: 'Takes claims in.',
      instructions: `Open a claim. Then delegate at once to @assessor, with the photos, and to @fraud, with no attachments; name the
number of the claim to both. With both results hand over to @adjuster, with the number, the sum in euros and what @fraud found.`,
      tools: ['open_claim', 'delegate', 'handoff'],
      ...model(scripts.intake),
    },
    {
      id: 'assessor',
      role: 'worker',
      description: 'Says what a damage costs.',
      instructions: `Look at the photo. Ask people once for what the price depends on and the photo does not show. Then name each
part with its price, and the sum in euros.`,
      tools: ['ask'],
      ...model(scripts.assessor),
    },
    {
      id: 'fraud',
      role: 'worker',
      description: 'Looks for signs of fraud.',
      instructions: 'Look at the earlier claims. Say what is odd, and no more than they show.',
      tools: ['earlier_claims'],
      ...model(scripts.fraud),
    },
    {
      id: 'adjuster',
      description: 'Settles claims.',
      instructions: `Pay what was assessed, unless something is odd. Above 5,000 euros your call waits for Dana. Then tell the
claimant what is paid, or why nothing is.`,
      tools: ['pay'],
      ...model(scripts.adjuster),
    },
    {
      id: 'letters',
      description: 'Writes letters.',
      instructions:
        'Write the claimant a letter: what was assessed, who approved it, what is paid. Only what you were told.',
      // It joins when all is done. By words alone it would not know what was assessed, approved and paid.
      sees: 'results',
      ...model(scripts.letters),
    },
  ],
  defaults: { respondWhenUnaddressed: 'intake' },
});
