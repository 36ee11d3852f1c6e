import * as z from 'zod';
import { defineTool, type Event, type Troupe } from '../src/index.ts';
import { agentWith, ANA, type Door, type Scene, type Stage } from './scene.ts';

const note = defineTool({
  name: 'note',
  description: 'Takes a note.',
  schema: z.object({ text: z.string() }),
  run: () => 'Noted.',
});

const pay = defineTool({
  name: 'pay',
  description: 'Pays an amount.',
  schema: z.object({ amount: z.number() }),
  needsApproval: true,
  run: () => 'Paid.',
});

/** Resolves with the next event that fits. */
type Next = (fits: (event: Event) => boolean) => Promise<Event>;

/** Told of new events as programs are that use the library: by `watch`. */
function eventsOf(troupe: Troupe): Next {
  const waiting = new Set<(event: Event) => void>();
  troupe.watch((note) => {
    if (note.type === 'event') for (const tell of waiting) tell(note.event);
  });
  return (fits) =>
    new Promise((resolve, reject) => {
      const tell = (event: Event) => {
        if (event.kind === 'turn.failed') reject(new Error(event.body.message));
        if (!fits(event)) return;
        waiting.delete(tell);
        resolve(event);
      };
      waiting.add(tell);
    });
}

/** `last`: the agent whose turn is the last one. `first`: the one that is asked. */
function libraryScene(
  name: string,
  company: Scene['company'],
  { last = 'agent', meanwhile = () => Promise.resolve() }: { last?: string; meanwhile?: Meanwhile } = {},
): Scene {
  return {
    name,
    company,
    open({ troupe }: Stage): Promise<Door> {
      const next = eventsOf(troupe);
      return Promise.resolve({
        enter: (conversation) =>
          Promise.resolve({
            async turn(text) {
              const ended = next(
                (event) =>
                  event.kind === 'turn.done' &&
                  event.conversation === conversation &&
                  event.author.id === last,
              );
              const between = meanwhile({ troupe, next, conversation });
              await troupe.send(conversation, { author: ANA, to: ['agent'], content: text });
              await between;
              await ended;
            },
          }),
      });
    },
  };
}

type Meanwhile = (place: { troupe: Troupe; next: Next; conversation: string }) => Promise<void>;

async function approve({ troupe, next, conversation }: Parameters<Meanwhile>[0]): Promise<void> {
  const asked = await next(({ kind }) => kind === 'approval.requested');
  const request = (asked.body as { request?: string }).request ?? asked.id;
  await troupe.command({ command: 'decide', conversation, request, approved: true }, ANA);
}

/** The turns of the library. */
export const TURNS: readonly Scene[] = [
  libraryScene('plain', { agents: [agentWith('agent')] }),
  libraryScene('tool', {
    agents: [agentWith('agent', { call: { name: 'note', args: { text: 'x' } } })],
    tools: [note],
  }),
  libraryScene(
    'approval',
    { agents: [agentWith('agent', { call: { name: 'pay', args: { amount: 5 } } })], tools: [pay] },
    { meanwhile: approve },
  ),
  libraryScene('delegation', {
    agents: [
      agentWith('agent', { call: { name: 'delegate', args: { to: 'other', task: 'Count the boxes.' } } }),
      agentWith('other'),
    ],
  }),
  libraryScene(
    'handover',
    {
      agents: [
        agentWith('agent', { call: { name: 'handoff', args: { to: 'other', goal: 'Count the boxes.' } } }),
        agentWith('other'),
      ],
    },
    { last: 'other' },
  ),
];
