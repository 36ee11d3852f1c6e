import { beginTurn } from '../../src/context/index.ts';
import type { Event, TurnId } from '../../src/events/index.ts';
import { viewOf } from '../../test/support/log-player.ts';
import { HAS_DATA } from '../../test/support/real-logs.ts';
import { DATA_FILES, NO_DATA, SESSION } from '../data-files.ts';
import { atMost, figure, type Scored } from '../figure.ts';
import { addFraming, type Framing, markShareOf, noFraming, perLine, shareOf } from '../framing.ts';
import type { Options } from '../options.ts';
import { Replay, withAssistant } from '../replay.ts';
import { timedLog } from '../timed-log.ts';

const AGENTS = ['planner', 'coder', 'reviewer'];
const DIALOGUES = DATA_FILES.filter((file) => file.startsWith('locomo/'));

/**
 * What prompts cost beyond words, at the times of the transcripts. In a dialogue of many, three agents answer one person
 * in turn and read of each other what they missed. Peers: two agents speak, and a third reads each message on its own.
 */
export async function scoreFraming({ note }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const [dialogue, missed, peers, session, alone] = [
    noFraming(),
    noFraming(),
    noFraming(),
    noFraming(),
    noFraming(),
  ];
  for (const file of DIALOGUES) {
    note(file);
    const log = await timedLog(file);
    const replay = played(log, AGENTS);
    for (const agent of AGENTS) {
      addFraming(dialogue, replay.view(agent).slots);
      addFraming(missed, replay.view(agent).slots, ({ missed: lines }) => lines.length > 0);
    }
    addFraming(peers, newcomerTo(log.map(ofPeer)).slots);
  }
  note(SESSION);
  const work = await timedLog(SESSION);
  const together = played(work, AGENTS);
  for (const agent of AGENTS) addFraming(session, together.view(agent).slots);
  addFraming(alone, played(work, ['assistant']).view('assistant').slots);
  return {
    figures: [
      ...figuresOf('a dialogue of many', dialogue, 0.15),
      figure('tokens per missed line beyond its words', perLine(missed), 'ratio', atMost(8)),
      figure('tokens per message of a peer beyond its words', perLine(peers), 'ratio', atMost(10)),
      ...figuresOf('a coding session of three agents', session, 0.15),
      figure('framing of a coding session of one agent, of user-side tokens', shareOf(alone), 'share'),
    ],
    violations: [],
  };
}

function figuresOf(what: string, framing: Framing, most: number) {
  return [
    figure(`framing of ${what}, of user-side tokens`, shareOf(framing), 'share', atMost(most)),
    figure('  marks and times alone', markShareOf(framing), 'share'),
    figure('  user-side tokens', framing.sent, 'tokens'),
    figure('  lines', framing.lines, 'count'),
  ];
}

function played(log: readonly Event[], agents: readonly string[]): Replay {
  const replay = new Replay((n) => agents[(n * 7 + (n % 5)) % agents.length] ?? '');
  for (const _ of replay.play(withAssistant(log)));
  return replay;
}

/** The message as one of an agent with the person's name. */
function ofPeer(event: Event): Event {
  const id = event.author.name.toLowerCase();
  return { ...event, author: { kind: 'agent', id, name: event.author.name } };
}

function newcomerTo(log: readonly Event[]) {
  const view = viewOf('newcomer', log);
  const turn = { upTo: log.length, inputs: [log.length], live: {}, join: 'full' as const, baseline: 'b' };
  beginTurn(view, { id: `c:newcomer:1` as TurnId, ...turn });
  return view;
}
