import { useFrames } from '../shared/frames.ts';
import { later } from '../shared/later.tsx';
import { column, COLUMNS } from '../state/column.ts';
import { Spoken } from './banners.tsx';
import { Composer } from './composer.tsx';
import { Happened } from './happened.tsx';
import { Scrubber } from './scrubber.tsx';
import { rememberedSize, Separator } from './separator.tsx';
import { Tasks } from './tasks.tsx';
import { Stalled } from './stalled.tsx';
import { ThreadHead } from './thread-head.tsx';
import { Who } from './who.tsx';

const Detail = later(async () => (await import('./detail/detail.tsx')).Detail);
const Timeline = later(async () => (await import('./timeline/timeline.tsx')).Timeline);

// The conversation always shows both.
for (const part of [Detail, Timeline]) part.fetch();

const left = rememberedSize(
  { name: 'left', label: 'Width of the agents', min: 160, max: 400, grows: 'right' },
  224,
);
const right = rememberedSize(
  { name: 'right', label: 'Width of the details', min: 280, max: 900, grows: 'left' },
  // Wide screens have room for longer lines of a prompt.
  Math.min(680, Math.max(448, Math.round(innerWidth * 0.28))),
);
const top = rememberedSize(
  { name: 'top', label: 'Height of the timeline', min: 96, max: 600, grows: 'down' },
  // Tall windows have room for more lanes.
  Math.min(400, Math.max(256, Math.round(innerHeight * 0.28))),
);

/** Everything of one conversation: its agents, what happened, and the details of what is selected. */
export function Conversation({ id }: { id: string }) {
  // What was said comes first.
  const drawn = useFrames(2);
  return (
    <>
      <div
        class={`columns columns-${column.value}`}
        style={{
          '--left': `${left.px.value}px`,
          '--right': `${right.px.value}px`,
          '--top': `${top.px.value}px`,
        }}
      >
        <nav class="left" aria-label="Agents and conversations">
          <Who />
          <Separator size={left} />
        </nav>
        <main class="middle" aria-label="Conversation">
          <h1 class="unseen">{id}</h1>
          <p class="print-note">What is loaded of {id}. Ctrl-K and “Print all of it” prints the whole log.</p>
          <ThreadHead />
          <Stalled />
          <section class="timeline" aria-label="Timeline">
            {drawn > 0 && <Timeline />}
          </section>
          <Separator size={top} />
          <Happened />
          <Tasks />
          <Composer />
        </main>
        <aside class="right" aria-label="Details">
          <Separator size={right} />
          {drawn > 1 && <Detail />}
        </aside>
      </div>
      <Scrubber />
      <nav class="switch" aria-label="Columns">
        {COLUMNS.map(({ name, label }) => (
          <button
            key={name}
            type="button"
            class={`switch-${name}`}
            aria-pressed={column.value === name}
            onClick={() => (column.value = name)}
          >
            {label}
          </button>
        ))}
      </nav>
      <Spoken />
    </>
  );
}
