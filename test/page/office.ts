import * as z from 'zod';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Play } from './stage.ts';
import { hanging } from './vendor.ts';

/** About four thousand tokens of filler. */
export const LONG_REPORT = Array.from(
  { length: 190 },
  (_, n) =>
    `Row ${n + 1}: berth ${(n * 7) % 23}, ${(n * 37) % 90} crates of tea, declared and paid in full at noon.`,
).join('\n');

export const STREAMED =
  'The tide tables for the week are in. High water is at four in the morning on Monday, and the pilots have asked that no ship over ninety metres is moved before it; after that the basin is open until the evening, and the two freighters from the north may be berthed side by side.';

const QUARTER_PRICE = { input: 3, cacheRead: 0.3, cacheWrite: 3.75, output: 15 };

const WINDOW = 32_000;
/** A context window that a dozen paragraphs exceed. */
const SMALL_WINDOW = 8_000;

const PEOPLE: (Partial<AgentInput> & { id: string })[] = [
  {
    id: 'orchestrator',
    name: 'Orchestrator',
    role: 'manager',
    description: 'Plans the work and hands it out.',
    instructions: 'Plan with Ana. Hand over to whoever knows most.',
    tools: ['handoff'],
  },
  {
    id: 'researcher',
    name: 'Researcher',
    role: 'worker',
    description: 'Finds things out.',
    instructions: 'Look things up. Say where you found them.',
    tools: ['search', 'read_report'],
  },
  {
    id: 'writer',
    name: 'Writer',
    role: 'worker',
    description: 'Writes what people read.',
    instructions: 'Write plainly. Ask when something is not clear.',
    tools: ['ask', 'publish'],
  },
  { id: 'critic', name: 'Critic', description: 'Finds what others missed.', instructions: 'Be brief.' },
  {
    id: 'archivist',
    name: 'Archivist',
    role: 'worker',
    description: 'Keeps the archive.',
    instructions: 'Index what you are given.',
    contextWindow: SMALL_WINDOW,
    maxOutputTokens: 1_000,
  },
];

/** Five agents of a harbour office, for the conversations of `fixtures.ts`. */
export const OFFICE: Play = {
  company: (baseUrl, clock) => ({
    // Remarks to nobody are for people, in a conversation that was handed over too.
    defaults: { afterHandoff: 'default' },
    agents: PEOPLE.map(
      (person) =>
        ({
          provider: 'openai-compatible',
          model: person.id,
          baseUrl,
          apiKeyEnv: 'KEY',
          contextWindow: WINDOW,
          price: QUARTER_PRICE,
          ...person,
        }) as AgentInput,
    ),
    tools: [
      defineTool({
        name: 'search',
        description: 'Searches the library of the harbour office.',
        schema: z.object({ query: z.string() }),
        run: ({ query }) => {
          clock.pass(320);
          return `3 results for "${query}": tide tables, pilot rules, the harbour log of May.`;
        },
      }),
      defineTool({
        name: 'read_report',
        description: 'Reads a report in full.',
        schema: z.object({ name: z.string() }),
        previewBytes: 64_000,
        run: () => {
          clock.pass(210);
          return LONG_REPORT;
        },
      }),
      defineTool({
        name: 'publish',
        description: 'Publishes a text for everybody to read.',
        schema: z.object({ title: z.string() }),
        needsApproval: true,
        run: ({ title }) => `"${title}" is published.`,
      }),
    ],
  }),
  lines: [
    {
      agent: 'orchestrator',
      hears: 'launch the new tariff',
      says: { text: 'Gladly. Before we announce it, the researcher should check what the old one cost.' },
    },
    {
      agent: 'orchestrator',
      hears: 'over to the researcher',
      says: {
        text: 'Handing over.',
        calls: [
          {
            name: 'handoff',
            args: JSON.stringify({
              to: 'researcher',
              goal: 'Find what the old tariff cost the small shippers.',
              done: 'Ana has agreed to wait for the figures.',
              next: 'Search the library and report.',
              why: 'You know the library.',
            }),
          },
        ],
      },
    },
    {
      agent: 'researcher',
      hears: 'Handing over',
      says: { text: 'Looking.', calls: [{ name: 'search', args: '{"query":"old tariff"}' }] },
    },
    {
      agent: 'researcher',
      hears: 'results for',
      says: {
        text: 'The old tariff took 4 % of every crate from small shippers, says the harbour log of May.',
      },
    },
    {
      agent: 'researcher',
      hears: 'Read the whole report',
      says: {
        text: 'Reading it from beginning to end.',
        calls: [{ name: 'read_report', args: '{"name":"crates-of-may"}' }],
      },
    },
    {
      agent: 'researcher',
      hears: 'Row 190',
      says: { text: 'All 190 rows are paid. Nothing is owed for May.' },
    },
    {
      agent: 'researcher',
      hears: 'be ready',
      says: { text: 'I am ready. The reports of May are on my desk.' },
    },
    {
      agent: 'researcher',
      hears: 'That is all for now',
      says: { text: 'Then I close the library for today.' },
    },
    { agent: 'researcher', hears: 'What do the tide tables say', says: () => hanging(STREAMED) },
    {
      agent: 'writer',
      hears: /announcement|is asked for again/,
      says: { text: 'From Monday on, small shippers pay half. Questions go to the harbour office.' },
    },
    {
      agent: 'writer',
      hears: 'headline',
      says: {
        calls: [
          {
            name: 'ask',
            args: '{"question":"Which tone should the headline have?","choices":["calm","festive"]}',
          },
        ],
      },
    },
    {
      agent: 'writer',
      hears: /calm|festive/,
      says: { text: 'Then calm it is: "Half price for small shippers".' },
    },
    {
      agent: 'writer',
      hears: 'publish it',
      says: { calls: [{ name: 'publish', args: '{"title":"Half price for small shippers"}' }] },
    },
    { agent: 'writer', hears: 'is published', says: { text: 'It is out.' } },
    {
      agent: 'archivist',
      hears: 'How far',
      says: { text: 'Twelve are indexed, the last of them from 1892.' },
    },
    {
      agent: 'archivist',
      hears: 'which comes next',
      says: { text: 'The ledger of 1893: it is next on the shelf.' },
    },
    {
      agent: 'archivist',
      hears: 'before 1900',
      says: { text: 'The ledgers before 1900 come first, and no page is guessed.' },
    },
    { agent: 'critic', hears: 'anything missing', says: { text: 'Nobody has said when it begins.' } },
  ],
};
