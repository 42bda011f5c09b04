//! A Source or a copy that was restored from a backup, or lost a part.

use super::history::HOUR;
use super::rendering::Form;
use super::table::{Row, check, row};
use super::world::{Checked, World};
use std::path::Path;

pub(super) const ROWS: &[Row] = &[
    row("restored server: nothing has changed since", |it| server(it, false)),
    row("restored server: there are newer changes", |it| server(it, true)),
    row("moved server: another address", moved),
    row("restored copy: folder and state", folder_and_state),
    row("restored copy: the state alone", |it| one_of_both(it, Part::State)),
    row("restored copy: the folder alone", |it| one_of_both(it, Part::Folder)),
    row("lost copy: the state", lost_state),
    row("lost copy: the folder", lost_folder),
];

#[test]
fn restored_servers_and_copies_are_noticed() {
    check(ROWS);
}

fn server(world: &mut World, has_changes: bool) -> Checked {
    let backup = world.begin_changed()?;
    world.may_go_back = true;
    let (now, known) = (world.history.now, world.history.clone());
    world.history = backup;
    world.history.go_on_from(&known);
    world.history.now = now + HOUR;
    if has_changes {
        world.history.set(3);
        world.history.create([8]);
    }
    world.run()?;
    world.history.make_snapshot();
    world.run()?;
    world.history.set(4);
    world.run()?.right()?;
    world.may_go_back = false;
    world.rest()
}

/// The user gives the new address of a Source whose documents name only resources there.
fn moved(world: &mut World) -> Checked {
    world.begin(5)?;
    world.history.change();
    let own = world.go_to(None);
    let ran = world.run()?.named()?.costs(0, 12)?;
    if ran.kept.len() != 6 {
        return Err(format!("expected that nothing is changed: {}", ran.describe()));
    }
    world.run()?.named()?.costs(0, 12)?;
    world.go_to(Some(own));
    world.run()?.right()?;
    world.rest()
}

/// Copies a folder.
fn save(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            save(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
            let time = entry.metadata().unwrap().modified().unwrap();
            std::fs::File::options().write(true).open(&target).unwrap().set_modified(time).unwrap();
        }
    }
}

fn folder_and_state(world: &mut World) -> Checked {
    world.begin(5)?;
    world.stop();
    let (folder, backup) = (world.copy.options.folder.clone(), world.copy.place.path().join("b"));
    save(&folder, &backup);
    world.history.change();
    world.run()?.right()?;
    world.stop();
    std::fs::remove_dir_all(&folder).unwrap();
    save(&backup, &folder);
    world.forget();
    world.run()?.right()?;
    world.history.set(3);
    world.run()?.right()?;
    world.rest()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Folder,
    State,
}

/// Folder and state are in different places, and one was restored.
fn one_of_both(world: &mut World, part: Part) -> Checked {
    let (folder, state) = (world.copy.options.folder.clone(), world.copy.place.path().join("s"));
    world.copy.options.state = Some(state.clone());
    world.begin(5)?;
    world.stop();
    let (place, backup) =
        (if part == Part::Folder { folder } else { state }, world.copy.place.path().join("b"));
    save(&place, &backup);
    if part == Part::Folder && world.column.rendered.form() == Form::Files {
        // A restored file that is not in the database is not changed, like a file of the user.
        world.history.set(1);
        world.history.create([6]);
    } else {
        world.history.change();
    }
    world.run()?.right()?;
    world.stop();
    std::fs::remove_dir_all(&place).unwrap();
    save(&backup, &place);
    world.forget();
    world.run()?;
    world.history.set(3);
    world.run()?;
    world.compare()?.right()?;
    world.rest()
}

fn lost_state(world: &mut World) -> Checked {
    world.begin(5)?;
    world.stop();
    std::fs::remove_dir_all(world.copy.options.folder.join(".abreast")).unwrap();
    world.history.set(1);
    world.history.create([6]);
    world.run()?.right()?;
    world.history.delete(2);
    world.run()?.right()?;
    world.rest()
}

/// The state is elsewhere, and the folder is missing, as if it were not mounted.
fn lost_folder(world: &mut World) -> Checked {
    world.copy.options.state = Some(world.copy.place.path().join("state"));
    world.begin(5)?;
    world.stop();
    std::fs::remove_dir_all(&world.copy.options.folder).unwrap();
    world.forget();
    world.run()?;
    world.history.set(1);
    world.run()?;
    world.history.delete(2);
    world.run()?;
    Ok(())
}
