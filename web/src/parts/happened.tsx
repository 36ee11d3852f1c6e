import { Choice } from '../shared/choice.tsx';
import { Go } from '../shared/go.tsx';
import { TextFilter } from '../shared/text-filter.tsx';
import { agentsByNeed } from '../state/selection.ts';
import { PRESETS } from '../state/filter.ts';
import { go, LISTS, route } from '../state/route.ts';
import { middle } from '../state/middle.ts';
import { later } from '../shared/later.tsx';
import { Reading } from './reading/reading.tsx';
import '../style/list.css';

const AgentGraph = later(async () => (await import('./agent-graph.tsx')).AgentGraph);
const EventList = later(async () => (await import('./event-list.tsx')).EventList);
const TaskTree = later(async () => (await import('./task-tree.tsx')).TaskTree);
const TurnList = later(async () => (await import('./turn-list.tsx')).TurnList);

const VIEWS = { talk: Reading, turns: TurnList, events: EventList, tree: TaskTree, graph: AgentGraph };
const LIST_NAMES = { talk: 'Talk', turns: 'Turns', events: 'Events', tree: 'Tree', graph: 'Graph' };

/**
 * The middle column: the conversation, its turns, its events, the tree of its tasks, or the graph of its agents. With a
 * filter it shows turns or events.
 */
export function Happened() {
  const { kind, problems, by } = route.value;
  const Shown = VIEWS[middle.value];
  const isOwnKind = !PRESETS.some(([id]) => id === kind);
  return (
    <section class="list" aria-label="What happened">
      <header class="bar list-bar">
        <span class="list-switch" role="group" aria-label="List">
          {LISTS.map((list) => (
            <Go key={list} to={{ list }} isCurrent={middle.value === list}>
              {LIST_NAMES[list]}
            </Go>
          ))}
        </span>
        <Choice
          label="Kinds of events"
          of={isOwnKind ? [...PRESETS, [kind, kind]] : PRESETS}
          value={kind}
          onChange={(to) => go({ kind: to })}
        />
        <AgentFilter by={by} />
        <label class="list-check">
          <input
            type="checkbox"
            checked={problems}
            onChange={(event) => go({ problems: event.currentTarget.checked })}
          />
          Problems
        </label>
        <TextFilter of="q" label="Filter by text" placeholder="Filter" class="list-search" />
      </header>
      <Shown />
    </section>
  );
}

function AgentFilter({ by }: { by: string }) {
  const agents = agentsByNeed.value
    .map(({ id, name }) => [id as string, name] as const)
    .toSorted(([, a], [, b]) => a.localeCompare(b));
  const several = by.includes(',') ? [[by, `${by.split(',').length} agents`] as const] : [];
  return (
    <Choice
      label="Agent"
      of={[['', 'All agents'], ...several, ...agents]}
      value={by}
      onChange={(to) => go({ by: to })}
    />
  );
}
