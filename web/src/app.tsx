import { effect, untracked } from '@preact/signals';
import { Banners, Spoken } from './parts/banners.tsx';
import { Composer } from './parts/composer.tsx';
import { Happened, Reading } from './parts/happened.tsx';
import { Header } from './parts/header.tsx';
import { Scrubber } from './parts/scrubber.tsx';
import { SkipLink } from './parts/skip-link.tsx';
import { rememberedSize, Separator } from './parts/separator.tsx';
import { Tasks } from './parts/tasks.tsx';
import { Who } from './parts/who.tsx';
import { fetchOnApproach, later } from './shared/later.tsx';
import { dialog } from './state/dialogs.ts';
import { connection, openConversation } from './state/live.ts';
import { column, COLUMNS } from './state/column.ts';
import { refusal } from './state/refusal.ts';
import { conversation } from './state/route.ts';

const Detail = later(async () => (await import('./parts/detail/detail.tsx')).Detail);
const Gone = later(async () => (await import('./parts/gone.tsx')).Gone);
const Help = later(async () => (await import('./parts/help.tsx')).Help);
const Home = later(async () => (await import('./parts/home.tsx')).Home);
const Palette = later(async () => (await import('./parts/palette.tsx')).Palette);
const ThreadHead = later(async () => (await import('./parts/thread-head.tsx')).ThreadHead);
const Timeline = later(async () => (await import('./parts/timeline/timeline.tsx')).Timeline);
const TokenForm = later(async () => (await import('./parts/token-form.tsx')).TokenForm);

// Whoever is on the line of a conversation is about to open it.
fetchOnApproach('.inbox-row', [Detail, Reading, ThreadHead, Timeline]);

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
  256,
);

// Requested before the first frame, because the answer takes longer than drawing it.
effect(() => {
  const id = conversation.value;
  untracked(() => {
    openConversation(id);
  });
});
effect(() => {
  document.title = conversation.value === null ? 'Troupe' : `${conversation.value} · Troupe`;
});

export function App() {
  const id = conversation.value;
  const { state } = connection.value;
  const over = dialog.value;
  return (
    <>
      <SkipLink />
      <Header />
      <Banners />
      {state === 'token' ? (
        <TokenForm />
      ) : id === null ? (
        <Home />
      ) : connection.value.state === 'gone' ? (
        <Gone />
      ) : (
        <Conversation key={id} id={id} />
      )}
      {refusal.value !== null && (
        <p class="refusal" role="alert">
          {refusal.value}{' '}
          <button type="button" class="button" onClick={() => (refusal.value = null)}>
            Close
          </button>
        </p>
      )}
      {over?.name === 'palette' && <Palette key={over.number} about={over.about} />}
      {over?.name === 'help' && <Help key={over.number} />}
    </>
  );
}

function Conversation({ id }: { id: string }) {
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
          <ThreadHead />
          <section class="timeline" aria-label="Timeline">
            <Timeline />
          </section>
          <Separator size={top} />
          <Happened />
          <Tasks />
          <Composer />
        </main>
        <aside class="right" aria-label="Details">
          <Separator size={right} />
          <Detail />
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
